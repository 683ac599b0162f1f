"""`POST /events`: the rules for an event, what is stored of it, the answer."""
