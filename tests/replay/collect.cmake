# Runs `command`, whose words are separated by |, with launches of kernels written down in `folder`, which is emptied before.
file(REMOVE_RECURSE "${folder}")
file(MAKE_DIRECTORY "${folder}")
string(REPLACE "|" ";" command "${command}")
set(ENV{NITINOL_CASES} "${folder}")
execute_process(COMMAND ${command} COMMAND_ERROR_IS_FATAL ANY)
