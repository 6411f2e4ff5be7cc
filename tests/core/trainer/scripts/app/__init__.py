WHOSE = "the script's app"
