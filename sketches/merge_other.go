package sketches

func mergeRegisters(dst, src *[RegisterCount]byte) { mergeWords(dst, src) }
