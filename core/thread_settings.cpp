#include "core/thread_settings.h"

namespace nitinol {

constinit std::atomic<void (*)() noexcept> refresh_thread_settings = nullptr;

}  // namespace nitinol
