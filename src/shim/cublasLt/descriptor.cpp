// Create, initialize, destroy and the attributes of every cuBLASLt descriptor.
#include "shim/cublasLt/descriptor.h"

#include <cstddef>
#include <new>

#include "shim/cublasLt/attribute.h"

using namespace maya::abi;
using namespace maya::shim::cublaslt;

namespace {

#define MAYA_FIELD(ID, STRUCT, FIELD, VISIBLE) \
  Attribute { ID, offsetof(STRUCT, FIELD), sizeof(STRUCT::FIELD), VISIBLE }

constexpr Attribute kLayout[] = {
    MAYA_FIELD(CUBLASLT_MATRIX_LAYOUT_TYPE, Layout, type, 4),
    MAYA_FIELD(CUBLASLT_MATRIX_LAYOUT_ORDER, Layout, order, 4),
    MAYA_FIELD(CUBLASLT_MATRIX_LAYOUT_ROWS, Layout, rows, 8),
    MAYA_FIELD(CUBLASLT_MATRIX_LAYOUT_COLS, Layout, cols, 8),
    MAYA_FIELD(CUBLASLT_MATRIX_LAYOUT_LD, Layout, ld, 8),
    MAYA_FIELD(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, Layout, batch_count, 4),
    MAYA_FIELD(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, Layout, batch_stride, 8),
    MAYA_FIELD(CUBLASLT_MATRIX_LAYOUT_PLANE_OFFSET, Layout, plane_offset, 8),
    MAYA_FIELD(CUBLASLT_MATRIX_LAYOUT_BATCH_MODE, Layout, batch_mode, 4),
};

constexpr Attribute kMatmul[] = {
    MAYA_FIELD(CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, MatmulDesc, compute, 4),
    MAYA_FIELD(CUBLASLT_MATMUL_DESC_SCALE_TYPE, MatmulDesc, scale, 4),
    MAYA_FIELD(CUBLASLT_MATMUL_DESC_POINTER_MODE, MatmulDesc, pointer_mode, 4),
    MAYA_FIELD(CUBLASLT_MATMUL_DESC_TRANSA, MatmulDesc, transpose_a, 4),
    MAYA_FIELD(CUBLASLT_MATMUL_DESC_TRANSB, MatmulDesc, transpose_b, 4),
    MAYA_FIELD(CUBLASLT_MATMUL_DESC_TRANSC, MatmulDesc, transpose_c, 4),
    MAYA_FIELD(CUBLASLT_MATMUL_DESC_FILL_MODE, MatmulDesc, fill_mode, 4),
    MAYA_FIELD(CUBLASLT_MATMUL_DESC_EPILOGUE, MatmulDesc, epilogue, 4),
    MAYA_FIELD(CUBLASLT_MATMUL_DESC_BIAS_POINTER, MatmulDesc, bias, 8),
    MAYA_FIELD(CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, MatmulDesc, bias_stride, 8),
    MAYA_FIELD(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, MatmulDesc, aux, 8),
    MAYA_FIELD(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, MatmulDesc, aux_ld, 8),
    MAYA_FIELD(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, MatmulDesc, aux_stride, 8),
    MAYA_FIELD(CUBLASLT_MATMUL_DESC_ALPHA_VECTOR_BATCH_STRIDE, MatmulDesc, alpha_stride, 8),
    MAYA_FIELD(CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, MatmulDesc, sm_count_target, 4),
    MAYA_FIELD(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, MatmulDesc, a_scale, 8),
    MAYA_FIELD(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, MatmulDesc, b_scale, 8),
    MAYA_FIELD(CUBLASLT_MATMUL_DESC_C_SCALE_POINTER, MatmulDesc, c_scale, 8),
    MAYA_FIELD(CUBLASLT_MATMUL_DESC_D_SCALE_POINTER, MatmulDesc, d_scale, 8),
    MAYA_FIELD(CUBLASLT_MATMUL_DESC_AMAX_D_POINTER, MatmulDesc, amax_d, 8),
    MAYA_FIELD(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, MatmulDesc, aux_type, 4),
    MAYA_FIELD(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_SCALE_POINTER, MatmulDesc, aux_scale, 8),
    MAYA_FIELD(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_AMAX_POINTER, MatmulDesc, aux_amax, 8),
    MAYA_FIELD(CUBLASLT_MATMUL_DESC_FAST_ACCUM, MatmulDesc, fast_accum, 1),
    MAYA_FIELD(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, MatmulDesc, bias_type, 4),
    MAYA_FIELD(CUBLASLT_MATMUL_DESC_ATOMIC_SYNC_NUM_CHUNKS_D_ROWS, MatmulDesc, chunks_rows, 4),
    MAYA_FIELD(CUBLASLT_MATMUL_DESC_ATOMIC_SYNC_NUM_CHUNKS_D_COLS, MatmulDesc, chunks_cols, 4),
    MAYA_FIELD(CUBLASLT_MATMUL_DESC_ATOMIC_SYNC_IN_COUNTERS_POINTER, MatmulDesc, counters_in, 8),
    MAYA_FIELD(CUBLASLT_MATMUL_DESC_ATOMIC_SYNC_OUT_COUNTERS_POINTER, MatmulDesc, counters_out, 8),
    MAYA_FIELD(CUBLASLT_MATMUL_DESC_A_SCALE_MODE, MatmulDesc, a_scale_mode, 4),
    MAYA_FIELD(CUBLASLT_MATMUL_DESC_B_SCALE_MODE, MatmulDesc, b_scale_mode, 4),
    MAYA_FIELD(CUBLASLT_MATMUL_DESC_C_SCALE_MODE, MatmulDesc, c_scale_mode, 4),
    MAYA_FIELD(CUBLASLT_MATMUL_DESC_D_SCALE_MODE, MatmulDesc, d_scale_mode, 4),
    MAYA_FIELD(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_SCALE_MODE, MatmulDesc, aux_scale_mode, 4),
    MAYA_FIELD(CUBLASLT_MATMUL_DESC_D_OUT_SCALE_POINTER, MatmulDesc, d_out_scale, 8),
    MAYA_FIELD(CUBLASLT_MATMUL_DESC_D_OUT_SCALE_MODE, MatmulDesc, d_out_scale_mode, 4),
    MAYA_FIELD(CUBLASLT_MATMUL_DESC_EMULATION_DESCRIPTOR, MatmulDesc, emulation, 8),
};

constexpr Attribute kPreference[] = {
    MAYA_FIELD(CUBLASLT_MATMUL_PREF_SEARCH_MODE, Preference, search_mode, 4),
    MAYA_FIELD(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, Preference, max_workspace, 8),
    MAYA_FIELD(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, Preference, reduction_mask, 4),
    MAYA_FIELD(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, Preference, align_a, 4),
    MAYA_FIELD(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, Preference, align_b, 4),
    MAYA_FIELD(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, Preference, align_c, 4),
    MAYA_FIELD(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, Preference, align_d, 4),
    MAYA_FIELD(CUBLASLT_MATMUL_PREF_MAX_WAVES_COUNT, Preference, max_waves, 4),
    MAYA_FIELD(CUBLASLT_MATMUL_PREF_IMPL_MASK, Preference, implementation_mask, 8),
};

constexpr Attribute kTransform[] = {
    MAYA_FIELD(CUBLASLT_MATRIX_TRANSFORM_DESC_SCALE_TYPE, Transform, scale, 4),
    MAYA_FIELD(CUBLASLT_MATRIX_TRANSFORM_DESC_POINTER_MODE, Transform, pointer_mode, 4),
    MAYA_FIELD(CUBLASLT_MATRIX_TRANSFORM_DESC_TRANSA, Transform, transpose_a, 4),
    MAYA_FIELD(CUBLASLT_MATRIX_TRANSFORM_DESC_TRANSB, Transform, transpose_b, 4),
};

constexpr Attribute kEmulation[] = {
    MAYA_FIELD(0, Emulation, strategy, 4),         MAYA_FIELD(1, Emulation, special_values, 4),
    MAYA_FIELD(2, Emulation, mantissa_control, 4), MAYA_FIELD(3, Emulation, max_bits, 4),
    MAYA_FIELD(4, Emulation, bit_offset, 4),       MAYA_FIELD(5, Emulation, bit_count, 8),
};

template <class T, class... Args>
cublasStatus_t init(void* memory, std::size_t size, Args&&... args) {
  if (!memory || size < sizeof(T)) return CUBLAS_STATUS_INVALID_VALUE;
  new (memory) T{T::kMagic, std::forward<Args>(args)...};
  return CUBLAS_STATUS_SUCCESS;
}

template <class T, class H>
cublasStatus_t create(H* handle, const T& value) {
  if (!handle) return CUBLAS_STATUS_INVALID_VALUE;
  T* own = new (std::nothrow) T(value);
  if (own) *handle = static_cast<H>(maya::session::enter_handle(T::kMagic, own));
  if (own && *handle) return CUBLAS_STATUS_SUCCESS;
  delete own;
  return CUBLAS_STATUS_ALLOC_FAILED;
}

template <class T>
cublasStatus_t destroy(void* handle) {
  if (!handle) return CUBLAS_STATUS_SUCCESS;
  auto* own = static_cast<T*>(maya::session::remove_handle(T::kMagic, handle));
  delete own;
  return own ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

Layout layout(int type, std::uint64_t rows, std::uint64_t cols, std::int64_t ld) {
  Layout own;
  own.type = type, own.rows = rows, own.cols = cols, own.ld = ld;
  return own;
}

Layout grouped_layout(int type, int groups, const void* rows, const void* cols, const void* ld) {
  Layout own = layout(type, reinterpret_cast<std::uint64_t>(rows),
                      reinterpret_cast<std::uint64_t>(cols), reinterpret_cast<std::int64_t>(ld));
  own.batch_count = groups;
  own.batch_mode = kBatchGrouped;
  return own;
}

MatmulDesc matmul(int compute, int scale) {
  MatmulDesc own;
  own.compute = static_cast<std::int16_t>(compute);
  own.scale = static_cast<std::int16_t>(scale);
  return own;
}

}  // namespace

extern "C" {

cublasStatus_t cublasLtMatrixLayoutInit_internal(void* memory, std::size_t size, cudaDataType type,
                                                 std::uint64_t rows, std::uint64_t cols,
                                                 std::int64_t ld) {
  if (!memory || size < sizeof(Layout)) return CUBLAS_STATUS_INVALID_VALUE;
  new (memory) Layout(layout(type, rows, cols, ld));
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* handle, cudaDataType type,
                                          std::uint64_t rows, std::uint64_t cols, std::int64_t ld) {
  return create(handle, layout(type, rows, cols, ld));
}
cublasStatus_t cublasLtGroupedMatrixLayoutInit_internal(void* memory, std::size_t size,
                                                        cudaDataType type, int groups,
                                                        const void* rows, const void* cols,
                                                        const void* ld) {
  if (!memory || size < sizeof(Layout) || groups < 0) return CUBLAS_STATUS_INVALID_VALUE;
  new (memory) Layout(grouped_layout(type, groups, rows, cols, ld));
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtGroupedMatrixLayoutCreate(cublasLtMatrixLayout_t* handle, cudaDataType type,
                                                 int groups, const void* rows, const void* cols,
                                                 const void* ld) {
  if (groups < 0) return CUBLAS_STATUS_INVALID_VALUE;
  return create(handle, grouped_layout(type, groups, rows, cols, ld));
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t handle) {
  return destroy<Layout>(handle);
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t handle, int attribute,
                                                const void* from, std::size_t size) {
  return set(kLayout, as<Layout>(handle), attribute, from, size);
}
cublasStatus_t cublasLtMatrixLayoutGetAttribute(cublasLtMatrixLayout_t handle, int attribute,
                                                void* to, std::size_t size, std::size_t* written) {
  return get(kLayout, as<Layout>(handle), attribute, to, size, written);
}

cublasStatus_t cublasLtMatmulDescInit_internal(void* memory, std::size_t size,
                                               cublasComputeType_t compute, cudaDataType scale) {
  if (!memory || size < sizeof(MatmulDesc)) return CUBLAS_STATUS_INVALID_VALUE;
  new (memory) MatmulDesc(matmul(compute, scale));
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* handle, cublasComputeType_t compute,
                                        cudaDataType scale) {
  return create(handle, matmul(compute, scale));
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t handle) {
  return destroy<MatmulDesc>(handle);
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t handle, int attribute,
                                              const void* from, std::size_t size) {
  return set(kMatmul, as<MatmulDesc>(handle), attribute, from, size);
}
cublasStatus_t cublasLtMatmulDescGetAttribute(cublasLtMatmulDesc_t handle, int attribute, void* to,
                                              std::size_t size, std::size_t* written) {
  return get(kMatmul, as<MatmulDesc>(handle), attribute, to, size, written);
}

cublasStatus_t cublasLtMatmulPreferenceInit_internal(void* memory, std::size_t size) {
  if (!memory || size < sizeof(Preference)) return CUBLAS_STATUS_INVALID_VALUE;
  new (memory) Preference;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* handle) {
  return create(handle, Preference{});
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t handle) {
  return destroy<Preference>(handle);
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t handle,
                                                    int attribute, const void* from,
                                                    std::size_t size) {
  // Hints about the mean sizes of grouped problems (from 13.2 on) change no answer of ours.
  if (attribute > CUBLASLT_MATMUL_PREF_IMPL_MASK && attribute < 32 && as<Preference>(handle) &&
      from)
    return CUBLAS_STATUS_SUCCESS;
  return set(kPreference, as<Preference>(handle), attribute, from, size);
}
cublasStatus_t cublasLtMatmulPreferenceGetAttribute(cublasLtMatmulPreference_t handle,
                                                    int attribute, void* to, std::size_t size,
                                                    std::size_t* written) {
  return get(kPreference, as<Preference>(handle), attribute, to, size, written);
}

cublasStatus_t cublasLtMatrixTransformDescInit_internal(void* memory, std::size_t size,
                                                        cudaDataType scale) {
  return init<Transform>(memory, size, static_cast<std::int32_t>(scale));
}
cublasStatus_t cublasLtMatrixTransformDescCreate(cublasLtMatrixTransformDesc_t* handle,
                                                 cudaDataType scale) {
  Transform own;
  own.scale = scale;
  return create(handle, own);
}
cublasStatus_t cublasLtMatrixTransformDescDestroy(cublasLtMatrixTransformDesc_t handle) {
  return destroy<Transform>(handle);
}
cublasStatus_t cublasLtMatrixTransformDescSetAttribute(cublasLtMatrixTransformDesc_t handle,
                                                       int attribute, const void* from,
                                                       std::size_t size) {
  return set(kTransform, as<Transform>(handle), attribute, from, size);
}
cublasStatus_t cublasLtMatrixTransformDescGetAttribute(cublasLtMatrixTransformDesc_t handle,
                                                       int attribute, void* to, std::size_t size,
                                                       std::size_t* written) {
  return get(kTransform, as<Transform>(handle), attribute, to, size, written);
}

cublasStatus_t cublasLtEmulationDescInit_internal(void* memory, std::size_t size) {
  return init<Emulation>(memory, size);
}
cublasStatus_t cublasLtEmulationDescCreate(cublasLtEmulationDescOpaque_t** handle) {
  return create(handle, Emulation{});
}
cublasStatus_t cublasLtEmulationDescDestroy(cublasLtEmulationDescOpaque_t* handle) {
  return destroy<Emulation>(handle);
}
cublasStatus_t cublasLtEmulationDescSetAttribute(cublasLtEmulationDescOpaque_t* handle,
                                                 int attribute, const void* from,
                                                 std::size_t size) {
  return set(kEmulation, as<Emulation>(handle), attribute, from, size);
}
cublasStatus_t cublasLtEmulationDescGetAttribute(cublasLtEmulationDescOpaque_t* handle,
                                                 int attribute, void* to, std::size_t size,
                                                 std::size_t* written) {
  return get(kEmulation, as<Emulation>(handle), attribute, to, size, written);
}

}  // extern "C"
