from django.apps import AppConfig


class SiteConfig(AppConfig):
    name = "tests.site"
    label = "site_under_test"
