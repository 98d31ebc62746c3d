"""The table of the shop."""

from django.db import models


class Order(models.Model):
    """What somebody has bought. `receipt` is the id of the task that sends it."""

    sku = models.CharField(max_length=40)
    email = models.EmailField()
    state = models.CharField(max_length=20, default="placed")
    receipt = models.CharField(max_length=36, blank=True)

    def __str__(self) -> str:
        return f"{self.sku} for {self.email}, {self.state}"
