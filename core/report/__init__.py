"""Pages, plots and tables of a run, for people and for other programs."""
