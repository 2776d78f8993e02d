"""The shop's own screens, so that what the agent says can be looked up beside it."""

from __future__ import annotations

from django.contrib import admin

from project.shop.models import Customer, Order, OrderEvent, OrderLine


@admin.register(Customer)
class CustomerAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    list_display = ["name", "email", "account"]
    search_fields = ["name", "email"]
    autocomplete_fields = ["account"]


class LineInline(admin.TabularInline):  # type: ignore[type-arg]
    model = OrderLine
    extra = 0


class EventInline(admin.TabularInline):  # type: ignore[type-arg]
    model = OrderEvent
    extra = 0


@admin.register(Order)
class OrderAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    list_display = ["number", "customer", "status", "placed_on", "expected_on"]
    list_filter = ["status"]
    list_select_related = ["customer"]
    search_fields = ["number", "customer__name"]
    autocomplete_fields = ["customer"]
    inlines = [LineInline, EventInline]
