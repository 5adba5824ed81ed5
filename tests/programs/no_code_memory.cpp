// On a system that grants no executable memory at all, compiled functions are right, and the log
// says what is missing.

#include "nitinol.h"

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <string>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

using namespace nitinol;

namespace {

/// Lets the system refuse memory files, and pages that are or become executable.
bool refuse_code() {
  constexpr auto number = static_cast<__u32>(offsetof(seccomp_data, nr));
  constexpr auto protection = static_cast<__u32>(offsetof(seccomp_data, args) + 2 * sizeof(__u64));
  sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, number),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_memfd_create, 5, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_mmap, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_mprotect, 0, 2),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, protection),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
  };
  const sock_fprog program = {.len = sizeof rules / sizeof rules[0], .filter = rules};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

}  // namespace

int main() {
  // Opens the code generator, while its own code may be mapped.
  const auto first = compile([](const Tensor& x) { return exp(x) - x * 2; });
  for (int i = 0; i < 4; ++i) static_cast<void>(first(ones({5})));
  if (!refuse_code()) {
    std::puts("this system has no seccomp: nothing to test");
    return 0;
  }
  std::string said;
  set_log_sink([&said](LogLevel, std::string_view text) { said += text; });
  const auto f = compile([](const Tensor& x) { return exp(x * 0) * 3 + x; });
  for (int i = 0; i < 6; ++i) {
    if (f(ones({5})).data<float>()[4] != 4) return 1;
  }
  for (int i = 0; i < 6; ++i) {  // another kernel: said once
    if (compile([](const Tensor& x) { return x * x - 1; })(ones({5})).data<float>()[4] != 0)
      return 2;
  }
  set_log_sink(nullptr);
  const std::string expected = "the system grants no executable memory";
  const std::size_t at = said.find(expected);
  std::puts(said.c_str());
  if (!f.explain().signatures.at(0).plan.steps.empty() && at == std::string::npos) return 3;
  return said.find(expected, at + 1) == std::string::npos ? 0 : 4;
}
