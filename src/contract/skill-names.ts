import { z } from 'zod'

export const skillId = z
  .string()
  .max(80)
  .regex(/^[A-Za-z][\w-]*(?:\.[\w-]+){0,9}$/, 'is letters, digits, _ and - in at most ten parts between dots, such as deploy.container')
export const skillVersion = z
  .string()
  .max(64)
  .regex(
    /^(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)(?:-[\dA-Za-z-]+(?:\.[\dA-Za-z-]+)*)?(?:\+[\dA-Za-z-]+(?:\.[\dA-Za-z-]+)*)?$/,
    'is a semantic version, such as 1.3.0',
  )
