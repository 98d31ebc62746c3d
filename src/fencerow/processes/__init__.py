"""Attempts in processes of their own: started fresh, bounded in memory and time, ended with all they started."""
