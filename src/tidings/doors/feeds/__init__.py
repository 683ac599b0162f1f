"""The feeds door: ZeroEventHub v1 and FeedAPI v2 over topics and lanes."""
