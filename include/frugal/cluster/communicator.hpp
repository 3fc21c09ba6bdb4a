// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <locale>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <frugal/cluster/communicator/c10d.hpp>
#include <frugal/cluster/communicator/control_frame.hpp>
#include <frugal/cluster/communicator/guarded_store.hpp>
#include <frugal/cluster/communicator/meeting.hpp>
#include <frugal/cluster/communicator/rank_watch.hpp>
#include <frugal/cluster/communicator/rendezvous.hpp>
#include <frugal/cluster/world.hpp>
#include <frugal/core/state/save_board.hpp>
#include <frugal/error.hpp>

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

/// Gloo writes to a connection whose other end has gone: the system answers with SIGPIPE, which ends the
/// process without a word. Python's interpreter ignores it; while one of these lives, so does this
/// process, unless the program has a handler of its own.
class NoPipeSignal {
 public:
  NoPipeSignal() {
    std::scoped_lock const lock(mutex());
    if (count()++ != 0) return;
    struct sigaction now{};
    changed() = ::sigaction(SIGPIPE, nullptr, &now) == 0 && now.sa_handler == SIG_DFL;
    if (changed()) std::signal(SIGPIPE, SIG_IGN);
  }
  NoPipeSignal(NoPipeSignal const&) = delete;
  NoPipeSignal& operator=(NoPipeSignal const&) = delete;
  ~NoPipeSignal() {
    std::scoped_lock const lock(mutex());
    if (--count() != 0 || !changed()) return;
    struct sigaction now{};
    if (::sigaction(SIGPIPE, nullptr, &now) == 0 && now.sa_handler == SIG_IGN) {
      std::signal(SIGPIPE, SIG_DFL);
    }
  }

 private:
  // Never destroyed: communicators of the environment are not, either.
  static std::mutex& mutex() {
    static auto& one = *new std::mutex;
    return one;
  }
  static int& count() {
    static int number = 0;
    return number;
  }
  static bool& changed() {
    static bool is = false;
    return is;
  }
};

/// The exchanges of one Communicator that a rank has begun: messages, which say where it is
/// (ControlFrame), and tensors, which do not. By these two ranks find that each waits for an exchange that
/// the other one cannot begin: what a backend would wait for until its limit.
struct BegunExchanges {
  std::uint64_t look = 0;  ///< how often it has said so
  std::uint64_t messages = 0;
  std::uint64_t tensors = 0;
  std::uint64_t awaited =
      0;               ///< the number of the exchange of tensors that it waits for; 0: a message
  std::string what{};  ///< the one that it waits for

  std::string text() const {
    return std::to_string(look) + ' ' + std::to_string(messages) + ' ' + std::to_string(tensors) +
           ' ' + std::to_string(awaited) + ' ' + what;
  }
  static BegunExchanges parse(std::string const& text) {
    std::istringstream in(text);
    in.imbue(std::locale::classic());  // the program's may group digits
    BegunExchanges begun;
    in >> begun.look >> begun.messages >> begun.tensors >> begun.awaited;
    in.get();
    std::getline(in, begun.what);
    return begun;
  }

  /// Whether it still waits for the same as when it said `before`.
  bool still(BegunExchanges const& before) const {
    return look > before.look && messages == before.messages && tensors == before.tensors &&
           awaited == before.awaited;
  }

  /// Whether this rank waits for tensors of the other one, which has not begun to send them, and waits for a
  /// message of this one, which has not begun that: neither can. However slow the network is.
  bool blocks(BegunExchanges const& other) const {
    return awaited != 0 && other.awaited == 0 && other.tensors < awaited &&
           messages < other.messages;
  }
};

/// The looks of a wait that takes long at what the others wait for (BegunExchanges).
class BlockedLook {
 public:
  explicit BlockedLook(std::chrono::milliseconds first = std::chrono::seconds(1)) : pause_(first) {}

  struct Found {
    int rank = 0;
    std::string waits_in{};
  };
  /// The rank for which a wait for all cannot end, because it is at another place of the run. It must have
  /// said so again since this rank has looked: what it has said before may be of an earlier wait. Throws
  /// Error for a value that is not of this run; without an answer of the store it has seen nothing.
  std::optional<Found> look(c10d::Store& store, int rank, int size, BegunExchanges const& mine) {
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
  bool is_due() const { return std::chrono::steady_clock::now() >= next_; }

 private:
  std::chrono::milliseconds pause_;
  std::chrono::steady_clock::time_point next_ = std::chrono::steady_clock::now() + pause_;
  std::vector<BegunExchanges> before_{};
};

}  // namespace frugal::detail

namespace frugal {

/// What carries tensors between processes.
enum class Transport {
  fastest,  ///< NCCL for tensors on GPUs, Gloo for those in host memory
  /// Gloo for all; tensors on GPUs go by way of host memory. Several processes may have one GPU,
  /// which NCCL refuses.
  gloo,
};

namespace detail {

/// Thrown out of a wait that would not end.
struct OthersHaveEnded {
  std::string verdict{};
};

}  // namespace detail

/// What the processes of a world exchange: tensors of the same shapes, in the same order in all of
/// them. Gloo carries tensors in host memory, NCCL those on GPUs (with FRUGAL_CUDA; see Transport).
///
/// A world of one exchanges nothing, and opens no connection.
///
/// Threads  one calls at a time.
/// Errors   ClusterError if the ranks do not meet, if one ends, or if an exchange takes longer than
///          WaitLimits::collective. NCCL's exchanges are awaited by the GPU: there its own watch ends
///          the process after that time, if no exchange by Gloo has noticed before. After an error the
///          communicator cannot be used any more.
class Communicator : public std::enable_shared_from_this<Communicator> {
 public:
  /// Waits until all processes have come.
  static std::shared_ptr<Communicator> join(World const& world, WaitLimits const& limits = {},
                                            Transport transport = Transport::fastest) {
    auto store = world.size == 1 ? nullptr : detail::store_of(world, limits);
    return std::make_shared<Communicator>(std::move(store), world, limits, transport);
  }

  /// Over a store that the processes share already.
  Communicator(c10::intrusive_ptr<c10d::Store> store, World world, WaitLimits const& limits = {},
               Transport transport = Transport::fastest)
      : world_(std::move(world)), limits_(limits), transport_(transport) {
    if (world_.size == 1) {
      hosts_ = {detail::this_process()};
      return;
    }
    detail::Meeting met = detail::Meeting::of(std::move(store), world_, limits_);
    store_ = std::move(met.store), watch_ = std::move(met.watch), hosts_ = std::move(met.hosts);
    connect();
  }

  Communicator(Communicator const&) = delete;
  Communicator& operator=(Communicator const&) = delete;
  ~Communicator() { disconnect(); }

  /// Some of these ranks, in this order, which all call it: their exchanges, over the same store and
  /// watch. `name` is theirs alone. `counts`: whether all ranks of the world make as many exchanges in
  /// groups of this kind, so that fewer of them mean a rank that hangs. SettingsError if `ranks` has not
  /// this rank, one twice, or one that is not there.
  std::shared_ptr<Communicator> group(std::vector<int> const& ranks, std::string const& name,
                                      bool counts = true) {
    return std::shared_ptr<Communicator>(new Communicator(*this, ranks, name, counts));
  }

  World const& world() const { return world_; }
  int rank() const { return world_.rank; }
  /// What a rank of this communicator is called in the whole world.
  int rank_in_world(int rank) const {
    return ranks_.empty() ? rank : ranks_[static_cast<std::size_t>(rank)];
  }
  /// Of a dimension of a Grid: all processes of the run; and of `data`, those that hold the shards of one
  /// module. Null otherwise.
  std::shared_ptr<Communicator> const& everyone() const { return everyone_; }
  std::shared_ptr<Communicator> const& tensor() const { return tensor_; }
  void belongs_to(std::shared_ptr<Communicator> everyone, std::shared_ptr<Communicator> tensor) {
    everyone_ = std::move(everyone);
    tensor_ = std::move(tensor);
  }
  int size() const { return world_.size; }
  /// Where each rank runs: "node7, process 4711".
  std::vector<std::string> const& hosts() const { return hosts_; }

  /// How many machines they are.
  unsigned machines() const { return detail::machines_of(hosts_); }

  /// Whether exchanges of this tensor copy it to the host, and wait.
  bool goes_by_host(at::Tensor const& tensor) const {
    return transport_ == Transport::gloo && !tensor.is_cpu();
  }

  /// `mine` of each rank, row by row: [size, ...]. In host memory; carried beside the exchanges of
  /// gradients. ClusterError, in all ranks, if they are not at the same exchange (ControlFrame).
  /// `after_tensors`: at a place where all have begun the same exchanges of tensors.
  at::Tensor gather(at::Tensor const& mine, char const* what, bool after_tensors = false) {
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
  /// Messages up to so many bytes go in one exchange. All ranks call it, at one place; ClusterError if they
  /// have different numbers.
  void set_message_room(std::int64_t bytes) {
    at::Tensor const all =
        gather(at::full({1}, bytes, at::kLong), "the room of a message").view(-1);
    auto const* const rooms = all.const_data_ptr<std::int64_t>();
    for (int rank = 1; rank < size(); ++rank) {
      if (rooms[rank] == rooms[0]) continue;
      detail::refuse_other_place(
          "rank " + std::to_string(rank_in_world(rank)) + " sends up to " +
              std::to_string(rooms[rank]) + " bytes in a message, and rank " +
              std::to_string(rank_in_world(0)) + " " + std::to_string(rooms[0]),
          hosts_[static_cast<std::size_t>(rank)]);
    }
    frame_ = detail::ControlFrame::size_for(bytes);
  }
  /// Likewise that of most steps. No exchange: a run may have ended by an error.
  void reset_message_room() { frame_ = detail::ControlFrame::least; }
  /// Where the run is, for the check of gather(): of all groups of this world together.
  void set_place(PlaceInRun const& place) { *place_ = place; }
  PlaceInRun const& place() const { return *place_; }

  /// Part r of `in`, which has one for each rank, goes to rank r: `out` has the own part of each.
  void exchange(at::Tensor& out, at::Tensor& in, char const* what) {
    if (auto const work = start_exchange(out, in, what)) complete(work, what);
  }
  /// Begins that; both tensors must live until it is completed. Null if it is done.
  c10::intrusive_ptr<c10d::Work> start_exchange(at::Tensor& out, at::Tensor& in, char const* what) {
    if (size() == 1) {
      out.copy_(in);
      return {};
    }
    std::vector<std::int64_t> equal;
    ++begun_.tensors;
    if (goes_by_host(in)) {
      at::Tensor from = in.cpu(), to = at::empty_like(from);
      complete(begin(what, [&] { return data(from)->alltoall_base(to, from, equal, equal); }),
               what);
      out.copy_(to);
      return {};
    }
    return begin(what, [&] { return data(in)->alltoall_base(out, in, equal, equal); });
  }

  /// `all` gets `mine` of each rank.
  void collect(at::Tensor& all, at::Tensor& mine, char const* what) {
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

  /// A tensor in host memory from one rank to another one, which knows its size. Some ranks have more of
  /// these than others, so they do not count as exchanges.
  void send(at::Tensor const& tensor, int rank, char const* what) {
    std::vector<at::Tensor> one{tensor};
    complete_link(begin(what, [&] { return control_->send(one, rank, 0); }), what);
  }
  void send_to_first(at::Tensor const& tensor, char const* what) { send(tensor, 0, what); }
  void receive(at::Tensor const& into, int rank, char const* what) {
    std::vector<at::Tensor> one{into};
    complete_link(begin(what, [&] { return control_->recv(one, rank, 0); }), what);
  }

  /// Connects the ranks for the messages below. All call it together: otherwise the first message waits
  /// until all have one.
  void connect_links() {
    if (size() > 1) data(at::empty({0}));
  }
  /// Begins to send a tensor in host memory to one rank, which knows its shape and receives it with the
  /// same tag; those of one tag arrive in the order in which they are sent. The tensor must live until
  /// the send is completed by complete_link().
  c10::intrusive_ptr<c10d::Work> start_send(at::Tensor const& tensor, int rank, int tag) {
    std::vector<at::Tensor> one{tensor};
    return begin("a message to rank " + std::to_string(rank_in_world(rank)),
                 [&] { return data(tensor)->send(one, rank, tag); });
  }
  /// Likewise the receiving end.
  c10::intrusive_ptr<c10d::Work> start_receive(at::Tensor const& into, int rank, int tag) {
    std::vector<at::Tensor> one{into};
    return begin("a message of rank " + std::to_string(rank_in_world(rank)),
                 [&] { return data(into)->recv(one, rank, tag); });
  }
  /// Waits for a message between this rank and another one. Ranks make different numbers of these, so
  /// they do not count as exchanges.
  void complete_link(c10::intrusive_ptr<c10d::Work> const& work, std::string const& what) {
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

  /// Begins to add up `tensor` over the ranks, in place, in the backend's order. Null if it is done.
  c10::intrusive_ptr<c10d::Work> start_sum(at::Tensor& tensor) {
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
  /// Waits for an exchange. If another rank has ended, failed or hangs, the error names it.
  void complete(c10::intrusive_ptr<c10d::Work> const& work, char const* what, bool counts = true) {
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

  /// What the ranks leave for each other while they write a checkpoint; all make it at the same moments.
  /// Null in a world of one.
  std::shared_ptr<SaveBoard> save_board() {
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

  /// Before the process ends: this rank is not watched any more.
  void close() { watch_.reset(); }
  /// A run begins and ends, in which this rank is needed by the others.
  void enter_run() {
    if (watch_) watch_->enter_run();
  }
  void leave_run() {
    if (watch_) watch_->leave_run();
  }
  /// The step that the loop is at, for errors of the others.
  void at_step(std::uint64_t step) {
    if (!watch_) return;
    watch_->at_step(step);
    if (std::string const verdict = watch_->verdict(); !verdict.empty()) {
      refuse("begin step " + std::to_string(step), verdict);
    }
  }
  /// Gives the others the reason for which this rank ends: they end at once, and name it.
  void fail(std::exception const& error) noexcept {
    if (watch_) watch_->fail(error.what());
  }

  /// While the result lives, this rank reads or writes a checkpoint: the others wait for it without a
  /// limit, as long as it beats, and it is not ended as one that hangs.
  [[nodiscard]] std::shared_ptr<void> busy() {
    struct Busy {
      std::shared_ptr<detail::RankWatch> watch;  // first: destroyed last
      std::shared_ptr<void> is;
    };
    return watch_ ? std::make_shared<Busy>(watch_, watch_->busy()) : nullptr;
  }
  /// The text of rank 0, although other ranks may have ended: what it has saved is saved. All call it.
  std::string first_says(std::string const& text) {
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

 private:
  Communicator(Communicator& all, std::vector<int> const& ranks, std::string const& name,
               bool counts)
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

  /// Returns when all ranks are connected: one that left at once would otherwise close connections while
  /// others still make theirs to each other.
  void connect() {
    control_ = gloo("control");
    try {
      gather(at::empty({0}, at::kByte), "the connection of all ranks");
    } catch (...) {
      disconnect();
      throw;
    }
  }
  /// The others learn that this rank has left before they find its connections closed.
  void disconnect() {
    if (ranks_.empty() && watch_) watch_->go();
    if (!watch_) return;
    watch_->connects(true);
    device_data_.reset();
    host_data_.reset();
    control_.reset();
    watch_->connects(false);
  }

  /// Rows of bytes of one size in all ranks.
  at::Tensor gathered(at::Tensor const& mine, char const* what) {
    at::Tensor all = at::empty({size() * mine.numel()}, mine.options());
    at::Tensor own = mine;
    ++begun_.messages;
    auto const work = begin(what, [&] { return control_->_allgather_base(all, own); });
    awaits_message_ = true;
    complete(work, what);
    awaits_message_ = false;
    return all;
  }
  /// All ranks see the same frames, so all find the same.
  void require_one_place(char const* frames) const {
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

  /// Calls `starts`, which begins an exchange: the backend throws at once if a connection has broken.
  template <class Starts>
  c10::intrusive_ptr<c10d::Work> begin(std::string const& what, Starts&& starts) {
    std::string verdict = watch_ ? watch_->broken() : std::string();
    if (!verdict.empty()) refuse("complete " + what, verdict);
    try {
      return starts();
    } catch (Error const&) {
      throw;  // of frugal: the backend could not be made
    } catch (std::exception const& error) {
      verdict = watch_ ? watch_->noticed(watch_->find_ended()) : std::string();
      if (verdict.empty()) throw;  // the backend's own
      verdict += " (" + detail::first_line(error) + ")";
    }
    refuse("complete " + what, verdict);
  }

  [[noreturn]] void refuse(std::string const& what, std::string const& why) const {
    if (watch_) watch_->broke(why);
    int const all = size_of_world_ == 0 ? size() : size_of_world_;
    detail::refuse_rank(rank_in_world(rank()), all, hosts_[static_cast<std::size_t>(rank())], what,
                        why);
  }
  c10::intrusive_ptr<c10d::Backend> gloo(char const* name) {
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
  static std::string waited_since(std::chrono::steady_clock::time_point begun) {
    return "after " +
           detail::seconds_text(std::chrono::duration_cast<std::chrono::milliseconds>(
               std::chrono::steady_clock::now() - begun)) +
           ": ";
  }

  /// In slices, to see that another rank has found out that the run is over. NCCL's wait orders
  /// streams, and does not wait.
  void wait(c10d::Work& work, char const* what, bool of_all) {
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
  /// Ends a wait that cannot end, because a rank is at another place of the run.
  void look_for_others(detail::BlockedLook& looks, char const* what) {
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
  static bool is_of_gloo(c10d::Work& work) {
    return dynamic_cast<c10d::ProcessGroupGloo::AsyncWork*>(&work) != nullptr;
  }

  c10d::Backend* data(at::Tensor const& tensor) {
    auto& of_device = tensor.is_cpu() ? host_data_ : device_data_;
    if (!of_device) of_device = backend(tensor.device());
    return of_device.get();
  }

  c10::intrusive_ptr<c10d::Backend> backend(c10::Device device) {
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

  detail::NoPipeSignal no_pipe_signal_;  // first: connections close before it
  std::shared_ptr<Communicator> whole_;  ///< of a group: whose ranks it has
  c10::intrusive_ptr<c10d::Store> store_;
  World world_;
  WaitLimits limits_;
  Transport transport_;
  std::vector<std::string> hosts_;
  std::shared_ptr<detail::RankWatch>
      watch_;               ///< of all ranks of the world, groups of them included
  std::vector<int> ranks_;  ///< of a group: those of the world
  int size_of_world_ = 0;   ///< of a group: of the world
  bool counts_ = true;
  unsigned save_boards_ = 0;                  ///< made so far
  std::map<std::string, unsigned> groups_{};  ///< likewise, of each name
  detail::BegunExchanges begun_;
  std::uint64_t completed_tensors_ = 0;
  bool awaits_message_ = false;
  std::int64_t frame_ = detail::ControlFrame::least;  ///< bytes of a message's first part
  std::uint64_t gathers_ = 0;                         ///< begun
  std::shared_ptr<PlaceInRun> place_ = std::make_shared<PlaceInRun>();
  std::uint64_t says_ = 0;  ///< likewise, of first_says()
  std::shared_ptr<Communicator> everyone_, tensor_;
  c10::intrusive_ptr<c10d::Backend> control_, host_data_, device_data_;
};

}  // namespace frugal
