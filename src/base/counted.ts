export const count = (value: number): string => Math.round(value).toLocaleString('en-US')

/** `1 line`, `2,000 lines`. */
export const counted = (value: number, one: string, many = `${one}s`): string => `${count(value)} ${value === 1 ? one : many}`
