"""Submit, look at, wait for and move jobs; knows no declared job, only names and JSON."""
