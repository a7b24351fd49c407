"""A small project to build trees of."""

from __future__ import annotations

from pathlib import Path

import pytest

FILES = {
    "README.md": "# Shop\n\nA small shop.\n\n## Install\n\nRun `pip install shop`.\n",
    "docs/guide.md": (
        "# Guide\n\n## Refunds\n\nRefunds are paid within 14 days.\n\n## Shipping\n\nParcels leave on Mondays.\n"
    ),
    "src/shop/__init__.py": '"""A small shop."""\n',
    "src/shop/cart.py": '''"""What a customer wants to buy."""

MAX_ITEMS = 50


class Cart:
    """Items and their prices."""

    def __init__(self):
        self.items = []

    def add(self, name, price):
        """Put an item into the cart, unless it is full."""
        if len(self.items) >= MAX_ITEMS:
            raise ValueError("the cart is full")
        self.items.append((name, price))

    def total(self):
        """Sum up the prices of all items."""
        return sum(price for _, price in self.items)
''',
    "src/shop/payment.py": '''"""Charge credit cards."""

import time


def charge(card, amount, retries=3):
    """Charge a credit card; a declined payment is tried again."""
    for attempt in range(retries):
        if card.pay(amount):
            return True
        time.sleep(2**attempt)
    return False
''',
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a small project, which is the current folder too."""
    folder = tmp_path / "shop"
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    monkeypatch.chdir(folder)
    return folder
