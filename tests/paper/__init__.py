from pathlib import Path

#: The stored results in the checkout.
RESULTS = Path(__file__).parents[2] / "results" / "paper"
#: SHA-256 of every table that they give.
RECORDED = Path(__file__).parent / "data" / "tables.sha256"
