"""What doors need of feeds beside reading them: their keys, their partitions, how far kept cursors are behind."""
