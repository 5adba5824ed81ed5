// What may not run while the program ends.
//
// oneDNN has static objects, which are destroyed after ours when main has returned. Detached
// threads may still be inside it then, or come to it later. So the end of the program waits until
// nobody is inside, and who comes later stays outside: the process is about to be gone.
#pragma once

namespace nitinol::cpu {

/// While it lives, this thread is inside oneDNN. May not return, in a thread other than the one
/// that ends the program.
class InsideOneDnn {
 public:
  InsideOneDnn();
  ~InsideOneDnn();
  InsideOneDnn(const InsideOneDnn&) = delete;
  InsideOneDnn& operator=(const InsideOneDnn&) = delete;
};

/// True in the thread that ends the program, from when others are kept out. oneDNN may be without
/// some of its static objects by then: code for products of processors without AVX-512 is such.
[[nodiscard]] bool is_onednn_ending();

/// Call it whenever oneDNN may have made static objects, which it destroys when the program ends:
/// what is registered later runs earlier.
void close_at_exit();

}  // namespace nitinol::cpu
