"""Words and names: comparison, stems, stop words, and digests of documents. Several stages use these."""
