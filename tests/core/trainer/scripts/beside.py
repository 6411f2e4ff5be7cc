WORDS = "a module beside the script"
