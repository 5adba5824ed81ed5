message(FATAL_ERROR "the library includes a file of the consumer's")
