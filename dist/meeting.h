// Meeting: one collective of a group under way.
//
// Each member sends each other one a first message: a Header that says what it is doing, and up to
// inline_bytes of the data. What is left follows in messages of at most Engine::most_bytes, which
// are received when the header has been found to be what this member is doing, too. So members that
// do not do the same find out, and who has not come is known by name.
#pragma once

#include "dist/collective.h"
#include "dist/group_state.h"

#include <boost/container/small_vector.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace nitinol::dist {

class Meeting {
 public:
  /// Begins: `header` says what is done, but for its number. The group's mutex is held until the
  /// end. Of dealings of no bytes the headers alone are sent, as where something else
  /// moves what they speak of. `continues`: the last collective goes on. Throws Error(io) if the
  /// group has failed, or the engine fails.
  Meeting(World& world, GroupState& group, Header header, const Dealings& dealings,
          bool continues = false);
  ~Meeting();
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;
  /// Until all has come and gone. Throws Error(io), which breaks the group, if a member does
  /// something else, has left, or does not come in time. `is_beside`: others compute meanwhile,
  /// from whom no core is taken.
  void wait(bool is_beside);

  static constexpr std::size_t first_bytes = 2048;
  static constexpr std::size_t inline_bytes = first_bytes - sizeof(Header);

 private:
  static constexpr double asks_after = 1;  ///< seconds
  enum class Stage : uint8_t { first, rest, done };
  /// One direction of a dealing.
  struct Way {
    Stage stage = Stage::done;
    Request first{};
    std::vector<Request> rest;
    std::byte* message = nullptr;  ///< the first one
  };
  struct Peer {
    Dealing dealing;
    Way out, in;
  };

  void begin(Peer& peer);
  void read_first(Peer& peer);
  /// Whether nothing is left of it.
  bool has_ended(Peer& peer);
  bool poll();
  void check_others();
  void ask_others(double waited);
  void note_mismatch(int member, const Header& told);
  [[noreturn]] void fail(const std::string& text);
  [[nodiscard]] std::string name_of(int member) const;
  [[nodiscard]] std::string last_of(int member) const;

  World& world_;
  GroupState& group_;
  Header header_;
  std::size_t bytes_;  ///< that are sent beside the header
  boost::container::small_vector<Peer, 3> peers_;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point asked_ = began_;  ///< whether it shall go on
  uint64_t ended_ = 0;                                    ///< messages that have come or gone
  std::string mismatch_;  ///< what a member does that is something else
  bool has_ended_ = false;
  bool has_asked_ = false;  ///< ask_others()
};

}  // namespace nitinol::dist
