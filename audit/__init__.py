"""The metadata log as tables: export to Parquet, Spark data source, audit questions."""
