// SPDX-License-Identifier: Apache-2.0
// A simulated device: LibTorch's PrivateUse1, named "fake", with two devices. Its memory is the
// host's and its kernels are the CPU's, so that a run on it has the bits of a run on the CPU.
// Otherwise it is as strict as a GPU, and reports what a GPU would silently get wrong:
//
//  copies on a side stream run late, when something waits for them: without a wait, reads see
//  noise; a tensor is used before waiting for the copy that fills it; memory of one stream is used
//  on another that does not wait for it; memory of one stream is used on another and freed without
//  recordDataPtrOnStream, or a wait; page-locked memory is freed before the copy that reads it has
//  run, or written again before the host has waited for that copy; operators receive tensors of two
//  devices, other than scalars.
//
// Include it only in the programs of tests/device: it must be installed before the first backward.
#pragma once

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Functions.h>
#include <ATen/autocast_mode.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/native/Resize.h>
#include <ATen/native/TensorFactories.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace frugal_test::fake {

inline constexpr c10::DeviceType type = c10::DeviceType::PrivateUse1;
inline constexpr c10::DeviceIndex devices = 2;
inline constexpr c10::StreamId compute = 0;  // executes at once, in the order of submission

inline c10::Device device(c10::DeviceIndex index = 0) { return {type, index}; }

/// The device's state. Backward passes run in their own thread, hence the lock.
struct World {
  struct Memory {
    std::size_t bytes = 0;
    c10::StreamId stream = compute;                    // on which it was allocated
    std::map<c10::StreamId, std::uint64_t> used{};     // streams that used it, and when last
    std::map<c10::StreamId, std::uint64_t> written{};  // streams that wrote it, and when last
    std::set<c10::StreamId> known{};                   // streams recorded with the allocator
    int unwritten = 0;                                 // pending copies into it
  };
  /// The work of other streams that a stream is ordered after.
  using Known = std::map<c10::StreamId, std::uint64_t>;
  struct Task {
    std::function<void()> run;
    void const* reads;
  };

  std::recursive_mutex lock{};
  std::map<char*, Memory> memory{};
  std::map<char*, std::size_t> pinned{};
  std::map<c10::StreamId, std::deque<Task>> waiting{};
  std::map<c10::StreamId, std::uint64_t> ended{};   // completed tasks by stream
  std::map<c10::StreamId, std::uint64_t> queued{};  // submitted tasks by stream
  std::map<c10::StreamId, std::uint64_t> seen{};    // tasks that the host has waited for, by stream
  struct Read {
    c10::StreamId stream;
    std::uint64_t task;
    std::string bytes;
  };
  std::uint64_t clock = 0;                  // counts the submitted work
  std::map<c10::StreamId, Known> behind{};  // by stream
  Known host_knows{};                   // likewise for the host, and so for everything it submits
                                        // from now on
  std::map<void const*, Read> reads{};  // the last reads of copies, by address
  std::vector<std::string> log{};       // operations in order
  std::vector<std::string> complaints{};
  c10::StreamId last_stream = compute;
  std::size_t side_copies = 0;
  std::size_t waits = 0;  // of the host for the device

  void complain(std::string what) { complaints.push_back(std::move(what)); }

  template <class Map>
  static auto* block_of(Map& map, void const* at) {
    auto* const byte = static_cast<char*>(const_cast<void*>(at));
    auto next = map.upper_bound(byte);
    if (next == map.begin()) return static_cast<typename Map::value_type*>(nullptr);
    --next;
    std::size_t size = 0;
    if constexpr (std::is_same_v<typename Map::mapped_type, Memory>) {
      size = next->second.bytes;
    } else {
      size = next->second;
    }
    return byte < next->first + size ? &*next : nullptr;
  }

  static void merge(Known& into, Known const& from) {
    for (auto const& [stream, until] : from) into[stream] = std::max(into[stream], until);
  }
  /// Whether the work of other streams on this memory is complete before this stream's next work
  /// begins. A read need not wait for other reads.
  bool is_behind(Memory const& what, c10::StreamId stream, bool writes) {
    for (auto const& [other, when] : writes ? what.used : what.written) {
      if (other != stream && when > std::max(behind[stream][other], host_knows[other]))
        return false;
    }
    return true;
  }

  /// Checks a copy's source. If it held other bytes for a copy that the host does not know to be
  /// complete, a real device might have copied these instead, because it runs behind the host.
  void look_at_source(void const* from, std::size_t count, c10::StreamId stream) {
    std::string bytes(static_cast<char const*>(from), count);
    auto const before = reads.find(from);
    if (before != reads.end() && before->second.bytes != bytes &&
        before->second.task > seen[before->second.stream]) {
      complain("page-locked memory was written again before the host knew its copy to be done");
    }
    reads.insert_or_assign(from, Read{stream, queued[stream], std::move(bytes)});
  }

  /// Runs a stream's tasks up to the n-th.
  void drain(c10::StreamId stream, std::uint64_t until) {
    auto& tasks = waiting[stream];
    while (ended[stream] < until && !tasks.empty()) {
      Task const task = std::move(tasks.front());
      tasks.pop_front();
      ++ended[stream];
      task.run();
    }
  }
  void drain(c10::StreamId stream) { drain(stream, queued[stream]); }
};

inline World& world() {
  static auto* const all = new World;  // memory may be freed after main
  return *all;
}

inline thread_local c10::DeviceIndex current_device = 0;
inline thread_local std::map<c10::DeviceIndex, c10::StreamId> current_streams;

inline c10::StreamId current_stream() { return current_streams[current_device]; }

// Memory ------------------------------------------------------------------------------------------

inline void free_memory(void* at) {
  World& all = world();
  std::scoped_lock const guard(all.lock);
  auto const found = all.memory.find(static_cast<char*>(at));
  if (found != all.memory.end()) {
    c10::StreamId const own = found->second.stream;
    for (auto const& [stream, when] : found->second.used) {
      bool const told = found->second.known.contains(stream);
      bool const waited = when <= std::max(all.behind[own][stream], all.host_knows[stream]);
      if (stream != own && !told && !waited) {
        all.complain("memory of stream " + std::to_string(found->second.stream) +
                     " was used on stream " + std::to_string(stream) +
                     " and freed, and the allocator was not told");
      }
    }
    // Earlier queued work continues with memory that is not reused yet: a stream's own allocations
    // are in its order.
    if (found->second.unwritten != 0) all.drain(found->second.stream);
    all.memory.erase(found);
  }
  std::free(at);
}

inline void free_pinned(void* at) {
  World& all = world();
  std::scoped_lock const guard(all.lock);
  std::size_t const size = all.pinned[static_cast<char*>(at)];
  for (auto const& [stream, tasks] : all.waiting) {
    for (auto const& task : tasks) {
      auto const* const block = World::block_of(all.pinned, task.reads);
      if (block && block->first == at) {
        all.complain("page-locked memory was freed before it was copied");
        all.drain(stream);
        break;
      }
    }
  }
  all.pinned.erase(static_cast<char*>(at));
  std::erase_if(all.reads, [&](auto const& read) {
    return read.first >= at && read.first < static_cast<char*>(at) + size;
  });
  std::free(at);
}

struct DeviceMemory final : c10::Allocator {
  c10::DataPtr allocate(std::size_t bytes) override {
    World& all = world();
    std::scoped_lock const guard(all.lock);
    void* const at = std::malloc(bytes == 0 ? 1 : bytes);
    std::memset(at, 0xFF, bytes == 0 ? 1 : bytes);  // NaN in every floating-point type
    all.memory[static_cast<char*>(at)] = {.bytes = bytes == 0 ? 1 : bytes,
                                          .stream = current_stream()};
    return {at, at, &free_memory, device(current_device)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free_memory; }
  void copy_data(void* to, void const* from, std::size_t bytes) const override {
    std::memcpy(to, from, bytes);
  }
};

struct PinnedMemory final : c10::Allocator {
  c10::DataPtr allocate(std::size_t bytes) override {
    World& all = world();
    std::scoped_lock const guard(all.lock);
    void* const at = std::malloc(bytes == 0 ? 1 : bytes);
    all.pinned[static_cast<char*>(at)] = bytes == 0 ? 1 : bytes;
    return {at, at, &free_pinned, c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free_pinned; }
  void copy_data(void* to, void const* from, std::size_t bytes) const override {
    std::memcpy(to, from, bytes);
  }
};

inline DeviceMemory device_memory;
inline PinnedMemory pinned_memory;

// Streams and events ------------------------------------------------------------------------------

struct Guard final : c10::impl::DeviceGuardImplInterface {
  struct Event {
    c10::StreamId stream;
    std::uint64_t after;  // number of the stream's tasks
    World::Known known;   // what the stream was ordered after, its own work included
  };

  c10::DeviceType type() const override { return fake::type; }
  c10::Device exchangeDevice(c10::Device to) const override {
    return device(std::exchange(current_device, to.index()));
  }
  c10::Device getDevice() const override { return device(current_device); }
  void setDevice(c10::Device to) const override { current_device = to.index(); }
  void uncheckedSetDevice(c10::Device to) const noexcept override { current_device = to.index(); }
  c10::DeviceIndex deviceCount() const noexcept override { return devices; }

  static c10::Stream stream(c10::Device of, c10::StreamId id) {
    return c10::Stream(c10::Stream::UNSAFE, of.has_index() ? of : device(current_device), id);
  }
  c10::Stream getStream(c10::Device of) const override {
    return stream(of, current_streams[of.has_index() ? of.index() : current_device]);
  }
  c10::Stream getDefaultStream(c10::Device of) const override { return stream(of, compute); }
  c10::Stream getStreamFromGlobalPool(c10::Device of, bool) const override {
    std::scoped_lock const guard(world().lock);
    return stream(of, ++world().last_stream);
  }
  c10::Stream getNewStream(c10::Device of, int) const override {
    return getStreamFromGlobalPool(of, false);
  }
  c10::Stream exchangeStream(c10::Stream to) const override {
    auto const index = to.device_index();
    return stream(to.device(), std::exchange(current_streams[index], to.id()));
  }

  void record(void** event, c10::Stream const& on, c10::DeviceIndex,
              c10::EventFlag) const override {
    std::scoped_lock const guard(world().lock);
    if (!*event) *event = new Event{};
    World::Known known = world().behind[on.id()];
    known[on.id()] = ++world().clock;
    *static_cast<Event*>(*event) = {on.id(), world().queued[on.id()], std::move(known)};
    if (on.id() != compute) world().log.push_back("record");
  }
  void block(void* event, c10::Stream const& waits) const override {
    if (!event) return;
    std::scoped_lock const guard(world().lock);
    auto const& at = *static_cast<Event*>(event);
    // The host's next work on the waiting stream comes after what it waits for.
    world().drain(at.stream, at.after);
    World::merge(world().behind[waits.id()], at.known);
    if (at.stream != waits.id()) world().log.push_back("wait");
  }
  bool queryEvent(void* event) const override {
    if (!event) return true;
    std::scoped_lock const guard(world().lock);
    auto const& at = *static_cast<Event*>(event);
    return world().ended[at.stream] >= at.after;
  }
  void synchronizeEvent(void* event) const override {
    if (!event) return;
    std::scoped_lock const guard(world().lock);
    auto const& at = *static_cast<Event*>(event);
    world().drain(at.stream, at.after);
    world().seen[at.stream] = std::max(world().seen[at.stream], at.after);
    World::merge(world().host_knows, at.known);
  }
  void destroyEvent(void* event, c10::DeviceIndex) const noexcept override {
    delete static_cast<Event*>(event);
  }
  bool queryStream(c10::Stream const& of) const override {
    std::scoped_lock const guard(world().lock);
    return world().waiting[of.id()].empty();
  }
  void synchronizeStream(c10::Stream const& of) const override {
    std::scoped_lock const guard(world().lock);
    world().drain(of.id());
    world().host_knows[of.id()] = ++world().clock;
  }
  void synchronizeDevice(c10::DeviceIndex) const override {
    std::scoped_lock const guard(world().lock);
    for (auto const& [stream, tasks] : world().queued) world().drain(stream);
    for (c10::StreamId each = compute; each <= world().last_stream; ++each) {
      world().host_knows[each] = ++world().clock;
    }
  }
  void recordDataPtrOnStream(c10::DataPtr const& data, c10::Stream const& on) const override {
    std::scoped_lock const guard(world().lock);
    if (auto* const block = World::block_of(world().memory, data.get())) {
      block->second.known.insert(on.id());
      world().log.push_back("tell the allocator");
    }
  }
};

// Random numbers ----------------------------------------------------------------------------------

/// An independent generator, with another sequence than the CPU's.
struct Generator final : c10::GeneratorImpl {
  explicit Generator(c10::DeviceIndex index)
      : GeneratorImpl(fake::device(index), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)),
        host(at::detail::createCPUGenerator()) {}

  void set_current_seed(std::uint64_t seed) override { host.set_current_seed(seed + 1000); }
  void set_offset(std::uint64_t) override {}
  std::uint64_t get_offset() const override { return 0; }
  std::uint64_t current_seed() const override { return host.current_seed() - 1000; }
  std::uint64_t seed() override { return host.seed(); }
  void set_state(c10::TensorImpl const& state) override {
    at::Tensor const copy =
        at::Tensor::wrap_tensor_impl(
            c10::intrusive_ptr<c10::TensorImpl>::reclaim_copy(const_cast<c10::TensorImpl*>(&state)))
            .clone();
    host.set_state(copy);
  }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    return host.get_state().getIntrusivePtr();
  }
  Generator* clone_impl() const override {
    auto* const copy = new Generator(device_.index());
    copy->host = host.clone();
    return copy;
  }

  at::Generator host;
};

inline at::Generator const& generator(c10::DeviceIndex index) {
  static std::vector<at::Generator> all{at::make_generator<Generator>(0),
                                        at::make_generator<Generator>(1)};
  return all[static_cast<std::size_t>(index < 0 ? current_device : index)];
}

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return devices; }
  void setCurrentDevice(c10::DeviceIndex to) const override { current_device = to; }
  c10::DeviceIndex getCurrentDevice() const override { return current_device; }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex to) const override {
    return std::exchange(current_device, to);
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex to) const override {
    return std::exchange(current_device, to);
  }
  at::Generator const& getDefaultGenerator(c10::DeviceIndex index) const override {
    return generator(index);
  }
  at::Generator getNewGenerator(c10::DeviceIndex index) const override {
    return at::make_generator<Generator>(index < 0 ? current_device : index);
  }
  at::Device getDeviceFromPtr(void*) const override { return device(current_device); }
  bool isPinnedPtr(void const* at) const override {
    std::scoped_lock const guard(world().lock);
    return World::block_of(world().pinned, at) != nullptr;
  }
  c10::Allocator* getPinnedMemoryAllocator() const override { return &pinned_memory; }
};

// Kernels -----------------------------------------------------------------------------------------

inline bool is_fake(at::Tensor const& tensor) {
  return tensor.defined() && tensor.device().type() == type;
}

/// The fallback moves tensors as well, which a real kernel does not.
inline thread_local bool in_fallback = false;

/// The same memory, as a host tensor.
inline at::Tensor on_host(at::Tensor const& tensor) {
  if (!is_fake(tensor)) return tensor;
  return at::from_blob(tensor.data_ptr(), tensor.sizes(), tensor.strides(),
                       at::TensorOptions().dtype(tensor.dtype()));
}

/// Records that a kernel of the current stream uses this tensor.
inline void use(at::Tensor const& tensor, bool writes = false) {
  if (!is_fake(tensor) || tensor.numel() == 0) return;
  World& all = world();
  std::scoped_lock const guard(all.lock);
  auto* const block = World::block_of(all.memory, tensor.data_ptr());
  if (!block) return;
  if (!all.is_behind(block->second, current_stream(), writes)) {
    all.complain("memory was used on a stream that does not wait for what another does with it");
  }
  block->second.used[current_stream()] = ++all.clock;
  if (writes) block->second.written[current_stream()] = all.clock;
  if (block->second.unwritten != 0 && current_stream() != block->second.stream) {
    all.complain("a tensor was used before the copy that fills it was waited for");
  }
  if (current_stream() != compute) all.drain(current_stream());
}

inline void move_bytes(at::Tensor const& from, at::Tensor const& to, bool non_blocking) {
  World& all = world();
  std::scoped_lock const guard(all.lock);
  c10::StreamId const stream = current_stream();
  bool const from_pinned = !is_fake(from) && World::block_of(all.pinned, from.data_ptr());
  if (non_blocking && from_pinned && stream != compute && is_fake(to) && to.numel() != 0) {
    auto* const block = World::block_of(all.memory, to.data_ptr());
    if (!all.is_behind(block->second, stream, /*writes=*/true)) {
      all.complain("memory was written by a copy that does not wait for what another stream reads");
    }
    block->second.used[stream] = ++all.clock;
    block->second.written[stream] = all.clock;
    ++block->second.unwritten;
    ++all.side_copies;
    all.log.push_back("copy");
    char* const base = block->first;
    // Without handles: a real copy has only addresses.
    at::Tensor const source = at::from_blob(from.data_ptr(), from.sizes(), from.strides(),
                                            at::TensorOptions().dtype(from.dtype()));
    at::Tensor const target = on_host(to);
    all.waiting[stream].push_back({[source, target, base] {
                                     at::Tensor(target).copy_(source);
                                     auto const found = world().memory.find(base);
                                     if (found != world().memory.end()) --found->second.unwritten;
                                   },
                                   from.data_ptr()});
    ++all.queued[stream];
    all.look_at_source(from.data_ptr(), from.nbytes(), stream);
    return;
  }
  // As on CUDA: memory of the host that is not page-locked is copied while the host waits.
  bool const crosses = is_fake(from) != is_fake(to);
  if (crosses && from.numel() != 0 && !in_fallback) ++all.waits;
  use(from);
  use(to, /*writes=*/true);
  on_host(to).copy_(on_host(from));
}

inline void fallback(c10::OperatorHandle const& op, torch::jit::Stack* stack) {
  auto const inputs = torch::jit::last(*stack, op.schema().arguments().size());
  bool on_device = false;
  bool on_cpu = false;
  auto const look = [&](at::Tensor const& tensor, bool writes) {
    use(tensor, writes);
    if (is_fake(tensor)) on_device = true;
    if (tensor.defined() && tensor.is_cpu() && tensor.dim() != 0) on_cpu = true;
  };
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    auto const* const alias = op.schema().arguments()[i].alias_info();
    bool const writes = alias != nullptr && alias->isWrite();
    if (inputs[i].isTensor()) look(inputs[i].toTensor(), writes);
    if (inputs[i].isTensorList()) {
      for (at::Tensor const& tensor : inputs[i].toTensorVector()) look(tensor, writes);
    }
  }
  if (on_device && on_cpu) {
    world().complain(op.schema().name() + " was given tensors of two devices");
    TORCH_CHECK(false, op.schema().name(), " expects all tensors on one device");
  }
  bool const outer = std::exchange(in_fallback, true);
  at::native::cpu_fallback(op, stack);
  in_fallback = outer;
}

inline at::Tensor make_strided(c10::IntArrayRef sizes, c10::IntArrayRef strides,
                               std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
                               std::optional<at::Device> on, std::optional<bool>) {
  c10::DeviceGuard const guard(on && on->has_index() ? *on : device(current_device));
  return at::detail::empty_strided_generic(sizes, strides, &device_memory,
                                           c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                           dtype.value_or(at::kFloat));
}

inline at::Tensor make(c10::IntArrayRef sizes, std::optional<at::ScalarType> dtype,
                       std::optional<at::Layout>, std::optional<at::Device> on, std::optional<bool>,
                       std::optional<at::MemoryFormat> format) {
  c10::DeviceGuard const guard(on && on->has_index() ? *on : device(current_device));
  return at::detail::empty_generic(sizes, &device_memory,
                                   c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                   dtype.value_or(at::kFloat), format);
}

inline at::Tensor copied(at::Tensor const& from, at::Tensor const& to, bool non_blocking) {
  move_bytes(from, to, non_blocking);
  return to;
}

inline at::Tensor copied_and_resized(at::Tensor const& from, at::Tensor const& to) {
  if (from.sizes() != to.sizes()) const_cast<at::Tensor&>(to).resize_(from.sizes());
  move_bytes(from, to, false);
  return to;
}

inline at::Tensor const& resized(at::Tensor const& self, c10::IntArrayRef sizes,
                                 std::optional<at::MemoryFormat> format) {
  std::int64_t count = 1;
  for (std::int64_t const size : sizes) count *= size;
  auto* const impl = self.unsafeGetTensorImpl();
  auto const bytes = static_cast<std::size_t>(count + self.storage_offset()) * self.itemsize();
  c10::Storage const& storage = self.storage();
  if (storage.nbytes() < bytes) {
    auto data = device_memory.allocate(bytes);
    std::memcpy(data.get(), storage.data(), storage.nbytes());
    auto* const raw = storage.unsafeGetStorageImpl();
    raw->set_data_ptr_noswap(std::move(data));
    raw->set_nbytes(bytes);
  }
  impl->set_sizes_contiguous(sizes);
  if (format) impl->empty_tensor_restride(*format);
  return self;
}

inline at::Scalar scalar_of(at::Tensor const& self) {
  use(self);
  ++world().waits;
  return at::_local_scalar_dense(on_host(self));
}

inline at::Tensor strided(at::Tensor const& self, c10::IntArrayRef sizes, c10::IntArrayRef strides,
                          std::optional<std::int64_t> offset) {
  auto result = at::detail::make_tensor<c10::TensorImpl>(
      c10::TensorImpl::VIEW, c10::Storage(self.storage()), self.key_set(), self.dtype());
  result.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides,
                                                      offset.value_or(self.storage_offset()));
  return result;
}

inline at::Tensor viewed(at::Tensor const& self, c10::IntArrayRef sizes) {
  // The host's own view determines the strides, or that there is no such view.
  at::Tensor const seen = on_host(self).view(sizes);
  return strided(self, seen.sizes(), seen.strides(), self.storage_offset());
}

inline at::Tensor aliased(at::Tensor const& self, c10::IntArrayRef sizes,
                          c10::IntArrayRef strides) {
  return strided(self, sizes, strides, self.storage_offset());
}

inline at::Tensor& stored(at::Tensor& self, at::Storage source, std::int64_t offset,
                          c10::IntArrayRef sizes, c10::IntArrayRef strides) {
  auto* const impl = self.unsafeGetTensorImpl();
  impl->set_storage_keep_dtype(std::move(source));
  impl->set_sizes_and_strides(sizes, strides, offset);
  return self;
}

inline at::Generator drawn_from(std::optional<at::Generator> const& given, at::Tensor const& for_) {
  at::Generator const which = given ? *given : generator(for_.device().index());
  return static_cast<Generator*>(which.unsafeGetGeneratorImpl())->host;
}

inline at::Tensor& drawn(at::Tensor& self, double p, std::optional<at::Generator> given) {
  use(self, /*writes=*/true);
  on_host(self).bernoulli_(p, drawn_from(given, self));
  return self;
}

inline std::tuple<at::Tensor, at::Tensor> dropped(at::Tensor const& input, double p,
                                                  std::optional<bool> train) {
  if (!train.value_or(true)) return {input.clone(), at::ones_like(input, at::kBool)};
  use(input);
  at::Tensor const kept = at::empty_like(on_host(input)).bernoulli_(1 - p, drawn_from({}, input));
  at::Tensor const out = p == 1 ? at::zeros_like(kept) : on_host(input) * kept / (1 - p);
  return {out.to(input.device()), kept.to(at::kBool).to(input.device())};
}

/// Its schema does not declare that it changes the running statistics, so the fallback would lose
/// them.
inline std::tuple<at::Tensor, at::Tensor, at::Tensor> normalized(
    at::Tensor const& input, std::optional<at::Tensor> const& weight,
    std::optional<at::Tensor> const& bias, std::optional<at::Tensor> const& mean,
    std::optional<at::Tensor> const& variance, bool training, double momentum, double eps) {
  auto const host = [](std::optional<at::Tensor> const& tensor) -> std::optional<at::Tensor> {
    if (!tensor || !tensor->defined()) return tensor;
    use(*tensor);
    return on_host(*tensor);
  };
  use(input);
  auto const [out, saved_mean, saved_inverse] =
      at::native_batch_norm(on_host(input), host(weight), host(bias), host(mean), host(variance),
                            training, momentum, eps);
  auto const there = [&](at::Tensor const& tensor) { return tensor.to(input.device()); };
  return {there(out), there(saved_mean), there(saved_inverse)};
}

inline bool install() {
  c10::register_privateuse1_backend("fake");
  c10::SetAllocator(type, &device_memory);
  static c10::impl::DeviceGuardImplRegistrar const guard(type, new Guard);
  at::RegisterPrivateUse1HooksInterface(new Hooks);
  static torch::Library rest(torch::Library::IMPL, "_", c10::DispatchKey::PrivateUse1, __FILE__,
                             __LINE__);
  rest.fallback(torch::CppFunction::makeFromBoxedFunction<&fallback>());
  // Autocast does nothing here.
  static torch::Library cast(torch::Library::IMPL, "_", c10::DispatchKey::AutocastPrivateUse1,
                             __FILE__, __LINE__);
  cast.fallback(torch::CppFunction::makeFallthrough());
  static torch::Library own(torch::Library::IMPL, "aten", c10::DispatchKey::PrivateUse1, __FILE__,
                            __LINE__);
  own.impl("empty.memory_format", TORCH_FN(make));
  own.impl("empty_strided", TORCH_FN(make_strided));
  own.impl("_copy_from", TORCH_FN(copied));
  own.impl("_copy_from_and_resize", TORCH_FN(copied_and_resized));
  own.impl("resize_", TORCH_FN(resized));
  own.impl("_local_scalar_dense", TORCH_FN(scalar_of));
  own.impl("as_strided", TORCH_FN(strided));
  own.impl("view", TORCH_FN(viewed));
  own.impl("_reshape_alias", TORCH_FN(aliased));
  own.impl("set_.source_Storage_storage_offset", TORCH_FN(stored));
  own.impl("_has_compatible_shallow_copy_type",
           [](at::Tensor const&, at::Tensor const&) { return true; });
  own.impl("bernoulli_.float", TORCH_FN(drawn));
  own.impl("native_batch_norm", TORCH_FN(normalized));
  own.impl("native_dropout", TORCH_FN(dropped));
  return true;
}

// Before main: autograd counts the devices at the first backward pass.
inline bool const installed = install();

/// Errors reported since the last call, in one text; empty if there are none.
inline std::string complaints() {
  World& all = world();
  std::scoped_lock const guard(all.lock);
  std::string text;
  for (std::string const& each : std::exchange(all.complaints, {})) text += each + "\n";
  return text;
}

/// How often the host has waited for the device since the last call: copies between them, and
/// numbers that were read.
inline std::size_t waits() {
  std::scoped_lock const guard(world().lock);
  return std::exchange(world().waits, 0);
}

/// Operations on side streams since the last call.
inline std::vector<std::string> log() {
  std::scoped_lock const guard(world().lock);
  return std::exchange(world().log, {});
}

}  // namespace frugal_test::fake
