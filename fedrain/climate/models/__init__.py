"""The climate models that come with the package, and the base of those that compute on the host."""
