const WIDTH = 120
const HEIGHT = 28

type SparklineProps = { values: readonly (number | null)[]; label: string; width?: number; height?: number }

/** The course of a number, oldest first; a gap where there is no value. */
export function Sparkline({ values, label, width = WIDTH, height = HEIGHT }: SparklineProps) {
  const most = Math.max(0, ...values.map((value) => value ?? 0))
  const step = width / Math.max(1, values.length - 1)
  const y = (value: number) => height - 1.5 - (most === 0 ? 0 : (value / most) * (height - 3))
  let isOpen = false
  const path = values.map((value, index) => {
    if (value === null) isOpen = false
    const command = value === null ? '' : `${isOpen ? 'L' : 'M'}${(index * step).toFixed(1)} ${y(value).toFixed(1)}`
    if (value !== null) isOpen = true
    return command
  })
  return (
    <svg
      class="sparkline"
      viewBox={`0 0 ${width} ${height}`}
      preserveAspectRatio="none"
      style={{ height: `${height}px` }}
      role="img"
      aria-label={label}
    >
      <path d={path.join('')} />
    </svg>
  )
}
