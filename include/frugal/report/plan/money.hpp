// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <concepts>
#include <string>
#include <string_view>

/// Plain arithmetic about what training costs: prices, compute, memory, communication, failures. No
/// tensors.
namespace frugal::plan {

/// Units. A quantity has one; two units never mix without a conversion that is written out.
struct Dollar {};
struct DeviceHour {};
struct NodeHour {};
struct Second {};
struct Gigabit {};
struct Gigabyte {};
template <class Amount, class Of>
struct Per {};

/// A number with a unit: explicit to make, and value() to read. Quantities of one unit add, compare
/// and divide to a plain number; a rate times its denominator is an amount.
template <class Unit>
class Quantity {
 public:
  constexpr Quantity() = default;
  constexpr explicit Quantity(double amount) : value_(amount) {}

  constexpr double value() const { return value_; }

  constexpr auto operator<=>(Quantity const&) const = default;
  constexpr Quantity operator-() const { return Quantity(-value_); }
  constexpr Quantity& operator+=(Quantity other) {
    value_ += other.value_;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity other) {
    value_ -= other.value_;
    return *this;
  }

  friend constexpr Quantity operator+(Quantity a, Quantity b) { return a += b; }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return a -= b; }
  friend constexpr Quantity operator*(Quantity a, double factor) {
    return Quantity(a.value_ * factor);
  }
  friend constexpr Quantity operator*(double factor, Quantity a) { return a * factor; }
  friend constexpr Quantity operator/(Quantity a, double divisor) {
    return Quantity(a.value_ / divisor);
  }
  friend constexpr double operator/(Quantity a, Quantity b) { return a.value_ / b.value_; }

 private:
  double value_ = 0;
};

using Usd = Quantity<Dollar>;
using DeviceHours = Quantity<DeviceHour>;
using NodeHours = Quantity<NodeHour>;
using PricePerDevice = Quantity<Per<Dollar, DeviceHour>>;  ///< USD per hour of one device
using PricePerNode = Quantity<Per<Dollar, NodeHour>>;      ///< USD per hour of a whole node
using Seconds = Quantity<Second>;
using Gigabits = Quantity<Gigabit>;    ///< 1e9 bits, as networks count
using Gigabytes = Quantity<Gigabyte>;  ///< 1e9 bytes, as memories and disks count
using GigabitsPerSecond = Quantity<Per<Gigabit, Second>>;
using GigabytesPerSecond = Quantity<Per<Gigabyte, Second>>;

namespace detail {

template <class Unit, class... Units>
inline constexpr bool one_of = (std::same_as<Unit, Units> || ...);
template <class Unit>
inline constexpr bool of_devices = one_of<Unit, DeviceHour, Per<Dollar, DeviceHour>>;
template <class Unit>
inline constexpr bool of_nodes = one_of<Unit, NodeHour, Per<Dollar, NodeHour>>;
template <class Unit>
inline constexpr bool of_bits = one_of<Unit, Gigabit, Per<Gigabit, Second>>;
template <class Unit>
inline constexpr bool of_bytes = one_of<Unit, Gigabyte, Per<Gigabyte, Second>>;

template <class A, class B>
constexpr bool refuse_mixed() {
  constexpr bool prices = (of_devices<A> && of_nodes<B>) || (of_nodes<A> && of_devices<B>);
  constexpr bool bits = (of_bits<A> && of_bytes<B>) || (of_bytes<A> && of_bits<B>);
  static_assert(!prices,
                "frugal: a price or time per device is mixed with one per node. Convert first: "
                "per_device(price, devices) or per_node(price, devices).");
  static_assert(!bits,
                "frugal: bits are mixed with bytes, of which each is eight bits. Convert first: "
                "in_bytes(x) or in_bits(x).");
  static_assert(prices || bits || std::same_as<A, void>,
                "frugal: these two quantities have units that do not fit each other.");
  return true;
}

}  // namespace detail

template <class A, class B>
constexpr auto operator*(Quantity<A> a, Quantity<B>) {
  static_assert(detail::refuse_mixed<A, B>());
  return a;
}
template <class A, class B>
  requires(!std::same_as<A, B>)
constexpr auto operator/(Quantity<A> a, Quantity<B>) {
  static_assert(detail::refuse_mixed<A, B>());
  return a;
}
template <class A, class B>
  requires(!std::same_as<A, B>)
constexpr auto operator+(Quantity<A> a, Quantity<B>) {
  static_assert(detail::refuse_mixed<A, B>());
  return a;
}
template <class A, class B>
  requires(!std::same_as<A, B>)
constexpr auto operator-(Quantity<A> a, Quantity<B>) {
  static_assert(detail::refuse_mixed<A, B>());
  return a;
}
template <class A, class B>
  requires(!std::same_as<A, B>)
constexpr bool operator<(Quantity<A>, Quantity<B>) {
  return detail::refuse_mixed<A, B>();
}

/// What a rate comes to: USD per hour of a device, times hours of devices.
template <class Amount, class Of>
constexpr Quantity<Amount> operator*(Quantity<Per<Amount, Of>> rate, Quantity<Of> of) {
  return Quantity<Amount>(rate.value() * of.value());
}
template <class Amount, class Of>
constexpr Quantity<Amount> operator*(Quantity<Of> of, Quantity<Per<Amount, Of>> rate) {
  return rate * of;
}
/// How much an amount pays for at a rate: Gigabytes / GigabytesPerSecond is Seconds.
template <class Amount, class Of>
constexpr Quantity<Of> operator/(Quantity<Amount> amount, Quantity<Per<Amount, Of>> rate) {
  return Quantity<Of>(amount.value() / rate.value());
}

constexpr PricePerDevice per_device(PricePerNode price, double devices_of_node) {
  return PricePerDevice(price.value() / devices_of_node);
}
constexpr PricePerNode per_node(PricePerDevice price, double devices_of_node) {
  return PricePerNode(price.value() * devices_of_node);
}

constexpr Gigabytes in_bytes(Gigabits x) { return Gigabytes(x.value() / 8); }
constexpr Gigabits in_bits(Gigabytes x) { return Gigabits(x.value() * 8); }
constexpr GigabytesPerSecond in_bytes(GigabitsPerSecond x) {
  return GigabytesPerSecond(x.value() / 8);
}
constexpr GigabitsPerSecond in_bits(GigabytesPerSecond x) {
  return GigabitsPerSecond(x.value() * 8);
}

/// Bytes as a plain number, for sizes that are counted.
constexpr Gigabytes gigabytes(double bytes) { return Gigabytes(bytes / 1e9); }

/// An amount of money, whatever the locale: cents from 1 on, and six digits below, because a short
/// run costs less than a cent.
std::string amount_text(double amount);

/// "$37,748.00", "-$0.25"
std::string dollars_text(double amount);

}  // namespace frugal::plan

#ifndef FRUGAL_COMPILED
#include <frugal/report/plan/money.ipp>
#endif
