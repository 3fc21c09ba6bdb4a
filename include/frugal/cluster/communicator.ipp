// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/cluster/communicator.hpp>

#include <frugal/inline.hpp>

#include <algorithm>
#include <locale>
#include <sstream>
#include <stdexcept>
#include <thread>

namespace frugal::detail {

/// The processes' board in their store.
class StoreBoard final : public SaveBoard {
 public:
  /// `store` must be this object's own: it is used while others wait in theirs.
  StoreBoard(c10::intrusive_ptr<c10d::Store> store, std::shared_ptr<RankWatch> watch, unsigned rank,
             unsigned count, std::chrono::milliseconds limit)
      : SaveBoard(rank, count), store_(std::move(store)), watch_(std::move(watch)), limit_(limit) {}

  void post(std::string const& key, std::string const& text) override {
    asked([&] { store_->set(key, text); });
  }
  std::string await(unsigned rank, std::string const& key) override {
    using Clock = std::chrono::steady_clock;
    auto const waits = watch_->idle();
    auto const begun = Clock::now();
    auto looked = begun, passed = begun;
    WaitLimit limit = watch_->limit_of(limit_);
    std::chrono::milliseconds pause(1);
    while (!is_there(key)) {
      if (std::string const verdict = watch_->seen_verdict(); !verdict.empty()) refuse(verdict);
      std::this_thread::sleep_for(pause);
      pause = std::min(2 * pause, std::chrono::milliseconds(50));
      // No exchange breaks where all wait here.
      if (Clock::now() - looked > std::chrono::milliseconds(500)) {
        std::string const ended = watch_->look_for_ended();
        if (is_there(key)) break;
        if (!ended.empty()) refuse(ended);
        looked = Clock::now();
      }
      auto const now = Clock::now();
      // Not more: this process may have been stopped.
      auto const more = std::chrono::duration_cast<std::chrono::milliseconds>(now - passed);
      passed += more;
      limit.pass(std::min<std::chrono::milliseconds>(more, std::chrono::seconds(2)));
      if (limit.wants_look() && limit.is_over(watch_->busy_times()) && !is_there(key)) {
        refuse(watch_->accuse(
            static_cast<int>(rank),
            "written its part of a checkpoint for " +
                seconds_text(
                    std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begun))));
      }
    }
    std::string text;
    asked([&] { text = store_->get_to_str(key); });
    return text;
  }
  void forget(std::string const& key) override {
    asked([&] { store_->deleteKey(key); });
  }

 private:
  bool is_there(std::string const& key) {
    bool there = false;
    asked([&] { there = store_->check({key}); });
    return there;
  }
  template <class Ask>
  void asked(Ask&& ask) {
    try {
      ask();
    } catch (std::exception const& error) {
      refuse(std::string("the store does not answer: ") + first_line(error));
    }
  }
  [[noreturn]] void refuse(std::string const& why) const {
    throw ClusterError(
        {.what = "the processes could not write a checkpoint together",
         .where = "rank " + std::to_string(rank()) + " of " + std::to_string(count()),
         .why = why,
         .fix = "Read the output of the rank that is named, and start all again."});
  }

  c10::intrusive_ptr<c10d::Store> store_;
  std::shared_ptr<RankWatch> watch_;
  std::chrono::milliseconds limit_;  ///< of a wait
};

FRUGAL_INLINE NoPipeSignal::~NoPipeSignal() {
  std::scoped_lock const lock(mutex());
  if (--count() != 0 || !changed()) return;
  struct sigaction now{};
  if (::sigaction(SIGPIPE, nullptr, &now) == 0 && now.sa_handler == SIG_IGN) {
    std::signal(SIGPIPE, SIG_DFL);
  }
}

FRUGAL_INLINE BegunExchanges BegunExchanges::parse(std::string const& text) {
  std::istringstream in(text);
  in.imbue(std::locale::classic());  // the program's may group digits
  BegunExchanges begun;
  in >> begun.look >> begun.messages >> begun.tensors >> begun.awaited;
  in.get();
  std::getline(in, begun.what);
  return begun;
}

FRUGAL_INLINE std::optional<BlockedLook::Found> BlockedLook::look(c10d::Store& store, int rank,
                                                                  int size,
                                                                  BegunExchanges const& mine) {
  next_ = std::chrono::steady_clock::now() + pause_;
  pause_ = std::min<std::chrono::milliseconds>(2 * pause_, std::chrono::seconds(30));
  auto const key = [](int of) { return "begun/" + std::to_string(of); };
  before_.resize(static_cast<std::size_t>(size));
  std::vector<BegunExchanges> now = before_;
  try {
    store.set(key(rank), mine.text());
    for (int other = 0; other < size; ++other) {
      if (other == rank || !store.check({key(other)})) continue;
      now[static_cast<std::size_t>(other)] = BegunExchanges::parse(store.get_to_str(key(other)));
    }
  } catch (Error const&) {
    throw;
  } catch (std::exception const&) {
    return std::nullopt;  // the watch sees that too
  }
  for (int other = 0; other < size; ++other) {
    BegunExchanges const& there = now[static_cast<std::size_t>(other)];
    BegunExchanges& before = before_[static_cast<std::size_t>(other)];
    bool const stays = before.look != 0 && there.still(before);
    if (!stays) before = there;
    if (stays && mine.blocks(there)) return Found{.rank = other, .waits_in = there.what};
  }
  return std::nullopt;
}

/// Thrown out of a wait that would not end.
struct OthersHaveEnded {
  std::string verdict{};
};

}  // namespace frugal::detail

namespace frugal {

FRUGAL_INLINE Communicator::Communicator(c10::intrusive_ptr<c10d::Store> store, World world,
                                         WaitLimits const& limits, Transport transport)
    : world_(std::move(world)), limits_(limits), transport_(transport) {
  if (world_.size == 1) {
    hosts_ = {detail::this_process()};
    return;
  }
  detail::Meeting met = detail::Meeting::of(std::move(store), world_, limits_);
  store_ = std::move(met.store), watch_ = std::move(met.watch), hosts_ = std::move(met.hosts);
  connect();
}

FRUGAL_INLINE at::Tensor Communicator::gather(at::Tensor const& mine, char const* what,
                                              bool after_tensors) {
  if (size() == 1) return mine.unsqueeze(0);
  using Frame = detail::ControlFrame;
  at::Tensor const own = mine.contiguous();
  std::int64_t const room = Frame::room(frame_);
  auto const bytes = static_cast<std::int64_t>(own.nbytes());
  Frame::Head const head =
      Frame::head(what, gathers_++, own, *place_, after_tensors ? begun_.tensors : 0);
  at::Tensor const frames = gathered(Frame::write(head, own.const_data_ptr(), frame_), what);
  require_one_place(static_cast<char const*>(frames.const_data_ptr()));
  std::vector<std::int64_t> shape = mine.sizes().vec();
  shape.insert(shape.begin(), size());
  at::Tensor all = at::empty(shape, own.options());
  // All have said that the rest has the same size.
  std::int64_t const rest = std::max<std::int64_t>(bytes - room, 0);
  at::Tensor rests;
  if (rest > 0) {
    at::Tensor const tail = at::empty({rest}, at::kByte);
    std::memcpy(tail.mutable_data_ptr(), static_cast<char const*>(own.const_data_ptr()) + room,
                static_cast<std::size_t>(rest));
    rests = gathered(tail, what);
  }
  for (std::int64_t rank = 0; rank < size() && bytes > 0; ++rank) {
    char* const to = static_cast<char*>(all.mutable_data_ptr()) + rank * bytes;
    auto const* const frame = static_cast<char const*>(frames.const_data_ptr()) + rank * frame_;
    std::memcpy(to, Frame::message(frame), static_cast<std::size_t>(bytes - rest));
    if (rest > 0) {
      std::memcpy(to + room, static_cast<char const*>(rests.const_data_ptr()) + rank * rest,
                  static_cast<std::size_t>(rest));
    }
  }
  return all;
}

FRUGAL_INLINE void Communicator::set_message_room(std::int64_t bytes) {
  at::Tensor const all = gather(at::full({1}, bytes, at::kLong), "the room of a message").view(-1);
  auto const* const rooms = all.const_data_ptr<std::int64_t>();
  for (int rank = 1; rank < size(); ++rank) {
    if (rooms[rank] == rooms[0]) continue;
    detail::refuse_other_place("rank " + std::to_string(rank_in_world(rank)) + " sends up to " +
                                   std::to_string(rooms[rank]) + " bytes in a message, and rank " +
                                   std::to_string(rank_in_world(0)) + " " +
                                   std::to_string(rooms[0]),
                               hosts_[static_cast<std::size_t>(rank)]);
  }
  frame_ = detail::ControlFrame::size_for(bytes);
}

FRUGAL_INLINE c10::intrusive_ptr<c10d::Work> Communicator::start_exchange(at::Tensor& out,
                                                                          at::Tensor& in,
                                                                          char const* what) {
  if (size() == 1) {
    out.copy_(in);
    return {};
  }
  std::vector<std::int64_t> equal;
  ++begun_.tensors;
  if (goes_by_host(in)) {
    at::Tensor from = in.cpu(), to = at::empty_like(from);
    complete(begin(what, [&] { return data(from)->alltoall_base(to, from, equal, equal); }), what);
    out.copy_(to);
    return {};
  }
  return begin(what, [&] { return data(in)->alltoall_base(out, in, equal, equal); });
}

FRUGAL_INLINE void Communicator::collect(at::Tensor& all, at::Tensor& mine, char const* what) {
  if (size() == 1) {
    all.copy_(mine);
    return;
  }
  ++begun_.tensors;
  if (goes_by_host(mine)) {
    at::Tensor from = mine.cpu(), to = at::empty(all.sizes(), from.options());
    complete(begin(what, [&] { return data(from)->_allgather_base(to, from); }), what);
    all.copy_(to);
    return;
  }
  complete(begin(what, [&] { return data(mine)->_allgather_base(all, mine); }), what);
}

FRUGAL_INLINE c10::intrusive_ptr<c10d::Work> Communicator::start_send(at::Tensor const& tensor,
                                                                      int rank, int tag) {
  std::vector<at::Tensor> one{tensor};
  return begin("a message to rank " + std::to_string(rank_in_world(rank)),
               [&] { return data(tensor)->send(one, rank, tag); });
}

FRUGAL_INLINE c10::intrusive_ptr<c10d::Work> Communicator::start_receive(at::Tensor const& into,
                                                                         int rank, int tag) {
  std::vector<at::Tensor> one{into};
  return begin("a message of rank " + std::to_string(rank_in_world(rank)),
               [&] { return data(into)->recv(one, rank, tag); });
}

FRUGAL_INLINE void Communicator::complete_link(c10::intrusive_ptr<c10d::Work> const& work,
                                               std::string const& what) {
  auto const begun = std::chrono::steady_clock::now();
  watch_->enter_link(what);
  std::string verdict;
  try {
    // Gloo cannot await one in slices: the thread of the beats ends the wait, by a verdict.
    auto const ends = watch_->on_verdict([&work] { work->abort(); }, limits_.collective);
    bool const came = work->wait(detail::no_limit);
    if (came) {
      watch_->leave();
      return;
    }
    verdict = watch_->verdict();
    if (verdict.empty()) verdict = watch_->find() + " (the time limit of a message)";
  } catch (std::exception const& error) {
    verdict = watch_->find() + " (" + detail::first_line(error) + ")";
  }
  refuse("complete " + what, waited_since(begun) + verdict);
}

FRUGAL_INLINE c10::intrusive_ptr<c10d::Work> Communicator::start_sum(at::Tensor& tensor) {
  ++begun_.tensors;
  if (goes_by_host(tensor)) {
    std::vector<at::Tensor> host{tensor.cpu()};
    complete(begin("the sum of gradients", [&] { return data(host.front())->allreduce(host); }),
             "the sum of gradients");
    tensor.copy_(host.front());
    return {};
  }
  std::vector<at::Tensor> one{tensor};
  return begin("the sum of gradients", [&] { return data(tensor)->allreduce(one); });
}

FRUGAL_INLINE void Communicator::complete(c10::intrusive_ptr<c10d::Work> const& work,
                                          char const* what, bool counts) {
  auto const begun = std::chrono::steady_clock::now();
  if (watch_) watch_->enter(what, counts && counts_);
  std::string verdict;
  try {
    wait(*work, what, counts);
    if (watch_) watch_->leave();
    if (!awaits_message_ && counts) ++completed_tensors_;
    return;
  } catch (detail::OthersHaveEnded const& ended) {
    verdict = ended.verdict;
  } catch (Error const& error) {  // a look at the store
    verdict = watch_->noticed(watch_->ends_by(error));
  } catch (std::exception const& error) {
    verdict = detail::first_line(error);
    if (watch_) verdict = watch_->find() + " (" + verdict + ")";
  }
  refuse("complete " + std::string(what), waited_since(begun) + verdict);
}

FRUGAL_INLINE std::shared_ptr<SaveBoard> Communicator::save_board() {
  if (size() == 1) return nullptr;
  c10::intrusive_ptr<c10d::Store> own;
  try {
    own = store_->clone();  // a connection of its own
  } catch (std::exception const& error) {
    refuse("connect to the store once more",
           watch_->find() + " (" + detail::first_line(error) + ")");
  }
  return std::make_shared<detail::StoreBoard>(
      c10::make_intrusive<c10d::PrefixStore>("saves/" + std::to_string(save_boards_++),
                                             std::move(own)),
      watch_, static_cast<unsigned>(rank()), static_cast<unsigned>(size()), limits_.collective);
}

FRUGAL_INLINE void Communicator::at_step(std::uint64_t step) {
  if (!watch_) return;
  watch_->at_step(step);
  if (std::string const verdict = watch_->verdict(); !verdict.empty()) {
    refuse("begin step " + std::to_string(step), verdict);
  }
}

FRUGAL_INLINE std::string Communicator::first_says(std::string const& text) {
  if (size() == 1) return text;
  detail::FirstWord word(*store_, *watch_, world_, rank_in_world(0), limits_.collective);
  std::string const key = "first/" + std::to_string(says_++);
  std::string why;
  if (rank() == 0) {
    word.say(key, text, [this](int of) { return rank_in_world(of); });
    return text;
  }
  if (auto said = word.hear(key, why)) return *std::move(said);
  refuse("learn what rank 0 has saved", why);
}

FRUGAL_INLINE Communicator::Communicator(Communicator& all, std::vector<int> const& ranks,
                                         std::string const& name, bool counts)
    : whole_(all.weak_from_this().lock()),
      world_(all.world_),
      limits_(all.limits_),
      transport_(all.transport_),
      counts_(counts) {
  detail::require_group(ranks, all.rank(), all.size(), name);
  for (int const each : ranks) {
    ranks_.push_back(all.rank_in_world(each));
    hosts_.push_back(all.hosts_[static_cast<std::size_t>(each)]);
  }
  world_.rank = static_cast<int>(std::ranges::find(ranks, all.rank()) - ranks.begin());
  world_.size = static_cast<int>(ranks.size());
  size_of_world_ = all.size_of_world_ == 0 ? all.size() : all.size_of_world_;
  watch_ = all.watch_;
  place_ = all.place_;
  if (size() == 1) return;
  // A second group of the name has its own addresses.
  unsigned const before = all.groups_[name]++;
  store_ = c10::make_intrusive<c10d::PrefixStore>(
      before == 0 ? name : name + "/again " + std::to_string(before), all.store_);
  connect();
}

FRUGAL_INLINE void Communicator::connect() {
  control_ = gloo("control");
  try {
    gather(at::empty({0}, at::kByte), "the connection of all ranks");
  } catch (...) {
    disconnect();
    throw;
  }
}

FRUGAL_INLINE void Communicator::disconnect() {
  if (ranks_.empty() && watch_) watch_->go();
  if (!watch_) return;
  watch_->connects(detail::RankWatch::Connections::close);
  device_data_.reset();
  host_data_.reset();
  control_.reset();
  watch_->connects(detail::RankWatch::Connections::rest);
}

FRUGAL_INLINE at::Tensor Communicator::gathered(at::Tensor const& mine, char const* what) {
  at::Tensor all = at::empty({size() * mine.numel()}, mine.options());
  at::Tensor own = mine;
  ++begun_.messages;
  auto const work = begin(what, [&] { return control_->_allgather_base(all, own); });
  awaits_message_ = true;
  complete(work, what);
  awaits_message_ = false;
  return all;
}

FRUGAL_INLINE void Communicator::require_one_place(char const* frames) const {
  using Frame = detail::ControlFrame;
  auto const named = [this](int rank) { return "rank " + std::to_string(rank_in_world(rank)); };
  Frame::Head const first = Frame::read(frames);
  for (int rank = 1; rank < size(); ++rank) {
    Frame::Head const head = Frame::read(frames + rank * frame_);
    std::string difference = Frame::difference(head, named(rank), first, named(0));
    if (difference.empty()) [[likely]]
      continue;
    detail::refuse_other_place(std::move(difference), hosts_[static_cast<std::size_t>(rank)]);
  }
}

FRUGAL_INLINE c10::intrusive_ptr<c10d::Backend> Communicator::gloo(char const* name) {
  auto const begun = std::chrono::steady_clock::now();
  try {
    return detail::gloo_backend(c10::make_intrusive<c10d::PrefixStore>(name, store_), world_,
                                *watch_, limits_.join);
  } catch (Error const&) {
    throw;
  } catch (std::exception const& error) {
    refuse("connect to the others",
           waited_since(begun) + watch_->find() + " (" + detail::first_line(error) + ")");
  }
}

FRUGAL_INLINE std::string Communicator::waited_since(std::chrono::steady_clock::time_point begun) {
  return "after " +
         detail::seconds_text(std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::steady_clock::now() - begun)) +
         ": ";
}

FRUGAL_INLINE void Communicator::wait(c10d::Work& work, char const* what, bool of_all) {
  constexpr std::chrono::milliseconds slice(250);
  detail::BlockedLook looks;
  bool const is_sliced = watch_ && is_of_gloo(work);
  detail::WaitLimit limit(limits_.collective, slice);
  if (is_sliced) limit = watch_->limit_of(limits_.collective);
  while (is_sliced && !work.isCompleted()) {
    try {
      work.wait(slice);
      return;
    } catch (std::exception const&) {
      if (work.isCompleted()) break;  // with an error, or meanwhile
    }
    if (std::string verdict = watch_->verdict(); !verdict.empty()) {
      throw detail::OthersHaveEnded{std::move(verdict)};
    }
    if (of_all) look_for_others(looks, what);
    limit.pass(slice);  // not by the clock: this process may have been stopped
    if (limit.wants_look() && limit.is_over(watch_->busy_times()) && !work.isCompleted()) {
      throw std::runtime_error("the time limit of an exchange");
    }
  }
  work.wait();
}

FRUGAL_INLINE void Communicator::look_for_others(detail::BlockedLook& looks, char const* what) {
  if (!looks.is_due()) return;
  ++begun_.look;
  detail::BegunExchanges mine = begun_;
  mine.awaited = awaits_message_ ? 0 : completed_tensors_ + 1;
  mine.what = what;
  auto const found = looks.look(*store_, rank(), size(), mine);
  if (!found) return;
  throw detail::OthersHaveEnded{watch_->noticed(watch_->accuse(
      rank_in_world(found->rank), "begun " + mine.what + ", for which rank " +
                                      std::to_string(rank_in_world(rank())) +
                                      " waits, and waits for the others in " + found->waits_in +
                                      ": the processes are at different places of the run"))};
}

FRUGAL_INLINE c10::intrusive_ptr<c10d::Backend> Communicator::backend(c10::Device device) {
  if (device.is_cpu()) return gloo("data");
#ifdef USE_C10D_NCCL
  if (device.is_cuda()) return detail::nccl_group(store_, rank(), size(), limits_);
#endif
  throw SettingsError({.what = "processes cannot exchange tensors on " + device.str(),
                       .where = world_.text(),
                       .why = "this program has Gloo alone, which carries host memory",
                       .fix = "Build with FRUGAL_CUDA=ON, join with Transport::gloo, or set "
                              "Settings::device to the CPU."});
}

}  // namespace frugal
