// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
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
  ~NoPipeSignal();

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
  static BegunExchanges parse(std::string const& text);

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
  std::optional<Found> look(c10d::Store& store, int rank, int size, BegunExchanges const& mine);
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
               Transport transport = Transport::fastest);

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
  at::Tensor gather(at::Tensor const& mine, char const* what, bool after_tensors = false);
  /// Messages up to so many bytes go in one exchange. All ranks call it, at one place; ClusterError if they
  /// have different numbers.
  void set_message_room(std::int64_t bytes);
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
  c10::intrusive_ptr<c10d::Work> start_exchange(at::Tensor& out, at::Tensor& in, char const* what);

  /// `all` gets `mine` of each rank.
  void collect(at::Tensor& all, at::Tensor& mine, char const* what);

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
  c10::intrusive_ptr<c10d::Work> start_send(at::Tensor const& tensor, int rank, int tag);
  /// Likewise the receiving end.
  c10::intrusive_ptr<c10d::Work> start_receive(at::Tensor const& into, int rank, int tag);
  /// Waits for a message between this rank and another one. Ranks make different numbers of these, so
  /// they do not count as exchanges.
  void complete_link(c10::intrusive_ptr<c10d::Work> const& work, std::string const& what);

  /// Begins to add up `tensor` over the ranks, in place, in the backend's order. Null if it is done.
  c10::intrusive_ptr<c10d::Work> start_sum(at::Tensor& tensor);
  /// Waits for an exchange. If another rank has ended, failed or hangs, the error names it.
  void complete(c10::intrusive_ptr<c10d::Work> const& work, char const* what, bool counts = true);

  /// What the ranks leave for each other while they write a checkpoint; all make it at the same moments.
  /// Null in a world of one.
  std::shared_ptr<SaveBoard> save_board();

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
  void at_step(std::uint64_t step);
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
  std::string first_says(std::string const& text);

 private:
  Communicator(Communicator& all, std::vector<int> const& ranks, std::string const& name,
               bool counts);

  /// Returns when all ranks are connected: one that left at once would otherwise close connections while
  /// others still make theirs to each other.
  void connect();
  /// The others learn that this rank has left before they find its connections closed.
  void disconnect();

  /// Rows of bytes of one size in all ranks.
  at::Tensor gathered(at::Tensor const& mine, char const* what);
  /// All ranks see the same frames, so all find the same.
  void require_one_place(char const* frames) const;

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
  c10::intrusive_ptr<c10d::Backend> gloo(char const* name);
  static std::string waited_since(std::chrono::steady_clock::time_point begun);

  /// In slices, to see that another rank has found out that the run is over. NCCL's wait orders
  /// streams, and does not wait.
  void wait(c10d::Work& work, char const* what, bool of_all);
  /// Ends a wait that cannot end, because a rank is at another place of the run.
  void look_for_others(detail::BlockedLook& looks, char const* what);
  static bool is_of_gloo(c10d::Work& work) {
    return dynamic_cast<c10d::ProcessGroupGloo::AsyncWork*>(&work) != nullptr;
  }

  c10d::Backend* data(at::Tensor const& tensor) {
    auto& of_device = tensor.is_cpu() ? host_data_ : device_data_;
    if (!of_device) of_device = backend(tensor.device());
    return of_device.get();
  }

  c10::intrusive_ptr<c10d::Backend> backend(c10::Device device);

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

#ifndef FRUGAL_COMPILED
#include <frugal/cluster/communicator.ipp>
#endif
