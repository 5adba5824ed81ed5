// Task: something that needs kernels.
#pragma once

#include <functional>
#include <string>
#include <vector>

struct Task {
  std::string name;
  std::function<void()> run;
};
using Tasks = std::vector<Task>;
