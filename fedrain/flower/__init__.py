"""The same experiments over Flower."""
