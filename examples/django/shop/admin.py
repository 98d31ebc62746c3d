"""Orders in the admin. Fencerow's jobs are there by themselves."""

from django.contrib import admin
from shop.models import Order


@admin.register(Order)
class OrderAdmin(admin.ModelAdmin):
    list_display = ("sku", "email", "state")
