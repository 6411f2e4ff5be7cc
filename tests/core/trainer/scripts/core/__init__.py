WHOSE = "the script's core"
