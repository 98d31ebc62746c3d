"""A throw-away feature, as a wing would bring it: a job may wish for a receipt, which its end signs.

It stands for every feature to come: an option of a submit, a table, a line of the doctor's, a purge, and SQL where jobs
are stored and where they end. It touches no file of the core; what it cannot do yet is said in test_road.py.
"""
