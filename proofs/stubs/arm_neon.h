typedef int uint32x2_t, uint32x4_t, uint64x2_t;
typedef struct { uint32x4_t val[4]; } uint32x4x4_t;
