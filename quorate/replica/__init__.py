"""One replica put together: stores, core, driver, controller and checkpoints."""
