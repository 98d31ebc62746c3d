"""What `manage.py migrate` does for us: see `tables.py`."""
