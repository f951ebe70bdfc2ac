typedef int __m128i, __m256i, __m512i, __mmask8, __mmask16, __mmask64;
