"""What operators do: commands, clusters, several servers, images, packages."""
