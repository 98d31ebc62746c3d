"""Reading a code base that uses Celery: what becomes what, what needs a person, what is dangerous. Nothing is run."""
