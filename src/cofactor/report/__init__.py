"""Reports: pages that are made of folders alone, for readers who may not see the data."""
