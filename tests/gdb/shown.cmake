# What a debugger, whose name is in `debugger`, shows of kernels.

function(expect output pattern)
  if(NOT output MATCHES "${pattern}")
    message(SEND_ERROR "${debugger} does not show\n${pattern}\nbut\n${output}")
  endif()
endfunction()

# Of nine stacks in a kernel: at least so many are known to be `inside`, and all lead to `outermost`.
function(expect_stacks output inside least outermost)
  string(REGEX MATCHALL "${inside}" inside "${output}")
  string(REGEX MATCHALL "${outermost}" outermost "${output}")
  list(LENGTH inside inside)
  list(LENGTH outermost outermost)
  if(inside LESS least OR outermost LESS 9)
    message(SEND_ERROR "of 9 stacks, ${inside} are known to be in the kernel, ${outermost} lead to main()\n${output}")
  endif()
endfunction()
