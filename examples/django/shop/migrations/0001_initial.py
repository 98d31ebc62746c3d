"""The table of orders."""

from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True
    dependencies = []
    operations = [
        migrations.CreateModel(
            name="Order",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("sku", models.CharField(max_length=40)),
                ("email", models.EmailField(max_length=254)),
                ("state", models.CharField(default="placed", max_length=20)),
                ("receipt", models.CharField(blank=True, max_length=36)),
            ],
        ),
    ]
