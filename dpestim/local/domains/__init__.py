"""Questions about domains that are too large to list, or whose values have an order, by reports of views of a value."""
