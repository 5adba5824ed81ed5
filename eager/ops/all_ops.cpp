#include "eager/all_ops.h"

#include "eager/ops/arithmetic.h"
#include "eager/ops/batch_norm.h"
#include "eager/ops/cast.h"
#include "eager/ops/collectives.h"
#include "eager/ops/compare.h"
#include "eager/ops/conv.h"
#include "eager/ops/create.h"
#include "eager/ops/elementary.h"
#include "eager/ops/index.h"
#include "eager/ops/join.h"
#include "eager/ops/masks.h"
#include "eager/ops/matmul.h"
#include "eager/ops/norms.h"
#include "eager/ops/order.h"
#include "eager/ops/pool.h"
#include "eager/ops/products.h"
#include "eager/ops/random.h"
#include "eager/ops/reduce.h"
#include "eager/ops/scatter.h"
#include "eager/ops/statistics.h"
#include "eager/ops/transfer.h"
#include "eager/ops/unary.h"
#include "eager/ops/view.h"

#include <algorithm>
#include <vector>

namespace nitinol {

std::span<const Op* const> all_ops() {
  // Never destroyed, as all that lives as long as the process: others may compute while it ends.
  static const auto& ops = *new const std::vector<const Op*>([] {
    std::vector<const Op*> list;
    for (const std::span<const Op> family :
         {unary_ops(),      activations_ops(), elementary_ops(), cast_ops(),       arithmetic_ops(),
          compare_ops(),    reduce_ops(),      statistics_ops(), view_ops(),       join_ops(),
          index_ops(),      order_ops(),       masks_ops(),      scatter_ops(),    matmul_ops(),
          conv_ops(),       pool_ops(),        create_ops(),     random_ops(),     transfer_ops(),
          batch_norm_ops(), norms_ops(),       products_ops(),   collectives_ops()}) {
      for (const Op& op : family) list.push_back(&op);
    }
    return list;
  }());
  return ops;
}

const Op* find_op(std::string_view name) {
  const auto found = std::ranges::find(all_ops(), name, &Op::name);
  return found == all_ops().end() ? nullptr : *found;
}

}  // namespace nitinol
