depth = "deep"
