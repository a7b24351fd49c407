"""A small tree of code, as a builder lays it out, and one of notes."""

from __future__ import annotations

import pytest

from metatree.node import Node
from metatree.trees.tree import Tree

FILES = {
    "shop/__init__.py": [("text", "", '"""A shop."""\nfrom shop.http import Client\n')],
    "shop/http.py": [
        ("text", "", '"""Talk to the server."""\nimport socket\n\nTIMEOUT_S = 30\n'),
        (
            "definition",
            "Client.post",
            'def post(self, path, body):\n    """Send a body."""\n    return self._send("POST", path, body)\n',
        ),
        (
            "definition",
            "Client.follow_redirects",
            "def follow_redirects(self, response):\n"
            '    """Follow redirects until there are none, or too many."""\n'
            "    if response.status in (301, 302):\n        return self.post(response.location, response.body)\n"
            "    return response\n",
        ),
    ],
    "shop/cart/models.py": [
        (
            "definition",
            "Cart.total",
            "def total(self):\n    return sum(item.price for item in self.items)\n",
        ),
        ("definition", "Cart.add", "def add(self, item):\n    self.items.append(item)\n"),
    ],
    "shop/cart/forms.py": [
        ("definition", "clean_price", "def clean_price(value):\n    return round(float(value), 2)\n"),
    ],
    "shop/text.py": [("definition", "wrap", "def wrap(text, width):\n    return text[:width]\n")],
}


@pytest.fixture
def code_tree() -> Tree:
    tree = Tree.create()
    for path, parts in FILES.items():
        above = tree.root
        folders = path.split("/")[:-1]
        for depth, name in enumerate(folders, start=1):
            folder = "/".join(folders[:depth])
            if folder not in tree:
                tree.add(Node(id=folder, title=name, kind="folder", attributes={"path": folder}), above)
            above = folder
        tree.add(Node(id=path, title=path.rpartition("/")[2], kind="file", attributes={"path": path}), above)
        for number, (kind, name, content) in enumerate(parts):
            id_ = f"{path}::{name or number}"
            node = Node(id=id_, title=name or "module", kind=kind, content=content, attributes={"path": path})
            tree.add(node, path)
    return tree


@pytest.fixture
def note_tree() -> Tree:
    tree = Tree.create()
    notes = {
        "auth": ("Auth", "Login and tokens", None),
        "auth/tokens": (
            "Tokens",
            "How tokens are issued",
            "A token is valid for one hour. It is signed with RS256.",
        ),
        "auth/login": ("Login", "Passwords", "Users log in with a password. After five failures they wait."),
        "money": ("Billing", "Invoices and refunds", None),
        "money/refunds": ("Refunds", "Paying back", "Refunds are paid within ten days. Ask for the receipt."),
        "money/tax": ("Taxes", "VAT in the EU", "The tax rate is nineteen percent in Germany."),
    }
    for id_, (title, description, content) in notes.items():
        parent = id_.rpartition("/")[0] or tree.root
        tree.add(Node(id=id_, title=title, description=description, content=content), parent)
    return tree
