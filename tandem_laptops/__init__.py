"""The one package that is installed. Tandem lives in its folder ``house``, which only Tandem's processes see.

``app``, ``core`` and ``resources`` are names that a user's own packages may have, too. In a checkout the
house is the checkout.
"""
