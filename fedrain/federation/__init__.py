"""Federation: the agents' policies are averaged, and each continues from the average."""

from fedrain.federation.mixing import Sharing, actor_distance, average, mean_network

__all__ = ["Sharing", "actor_distance", "average", "mean_network"]
