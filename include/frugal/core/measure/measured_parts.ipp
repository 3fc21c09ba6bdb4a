// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/core/measure/measured_parts.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

namespace frugal::detail {

FRUGAL_INLINE at::Tensor CountedValues::take(Counted::Kind kind, at::Tensor const& counted) const {
  values_->push_back({.kind = kind, .tensor = counted.detach().cpu().contiguous()});
  if (Counted const* const total = of_last()) return total->tensor.to(counted.device());
  return probe_ == 0 || kind == Counted::Kind::rows ? counted : counted * 2 + 1;
}

FRUGAL_INLINE void CountedWriter::put_text(std::string const& text) {
  put<std::uint64_t>(text.size());
  text_ += text;
}

FRUGAL_INLINE void CountedWriter::put(std::vector<Counted> const& values) {
  put<std::uint64_t>(values.size());
  for (Counted const& each : values) {
    put(each.kind);
    if (each.kind == Counted::Kind::number) {
      put(each.number);
      continue;
    }
    put(each.tensor.scalar_type());
    put<std::uint64_t>(static_cast<std::uint64_t>(each.tensor.dim()));
    for (std::int64_t const size : each.tensor.sizes()) put(size);
    text_.append(static_cast<char const*>(each.tensor.const_data_ptr()), each.tensor.nbytes());
  }
}

FRUGAL_INLINE void CountedWriter::put(Metrics const& metrics) {
  put<std::uint64_t>(metrics.size());
  for (auto const& [name, value] : metrics) {
    put_text(name);
    put(value);
  }
  put<std::uint64_t>(metrics.tables().size());
  for (auto const& [name, table] : metrics.tables()) {
    put_text(name);
    put(std::vector<Counted>{{.kind = Counted::Kind::tensor, .tensor = table.cpu().contiguous()}});
  }
}

FRUGAL_INLINE std::string CountedReader::text() {
  auto const size = get<std::uint64_t>();
  std::string value(at_, size);
  at_ += size;
  return value;
}

FRUGAL_INLINE std::vector<Counted> CountedReader::values() {
  std::vector<Counted> all(get<std::uint64_t>());
  for (Counted& each : all) {
    each.kind = get<Counted::Kind>();
    if (each.kind == Counted::Kind::number) {
      each.number = get<double>();
      continue;
    }
    auto const type = get<at::ScalarType>();
    std::vector<std::int64_t> sizes(get<std::uint64_t>());
    for (std::int64_t& size : sizes) size = get<std::int64_t>();
    each.tensor = at::empty(sizes, type);
    std::memcpy(each.tensor.mutable_data_ptr(), at_, each.tensor.nbytes());
    at_ += each.tensor.nbytes();
  }
  return all;
}

FRUGAL_INLINE Metrics CountedReader::metrics() {
  Metrics all;
  for (auto left = get<std::uint64_t>(); left != 0; --left) {
    std::string const name = text();
    all.set(name, get<double>());
  }
  for (auto left = get<std::uint64_t>(); left != 0; --left) {
    std::string const name = text();
    all.set_table(name, values().front().tensor);
  }
  return all;
}

FRUGAL_INLINE void add_counted(std::vector<Counted>& totals, std::vector<Counted> values,
                               std::string const& metric) {
  if (totals.empty()) {
    totals = std::move(values);
    return;
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    Counted& next = values[i];
    if (i == totals.size()) {
      totals.push_back(std::move(next));
      continue;
    }
    Counted& total = totals[i];
    bool const alike = total.kind == next.kind &&
                       (total.kind == Counted::Kind::number ||
                        (total.tensor.scalar_type() == next.tensor.scalar_type() &&
                         (total.kind == Counted::Kind::rows
                              ? total.tensor.sizes().slice(1) == next.tensor.sizes().slice(1)
                              : total.tensor.sizes() == next.tensor.sizes())));
    if (!alike) {
      throw MetricError({.what = "batches have counted numbers of different shapes",
                         .where = "metric " + metric,
                         .why = "what parts of the data have counted is put together",
                         .fix = "Return outputs of one number of classes, or of values, for all "
                                "batches."});
    }
    if (total.kind == Counted::Kind::number) {
      total.number += next.number;
    } else if (total.kind == Counted::Kind::tensor) {
      total.tensor = total.tensor + next.tensor;
    } else {
      total.tensor = at::cat({total.tensor, next.tensor});
    }
  }
}

}  // namespace frugal::detail
