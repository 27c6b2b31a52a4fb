/** Without the fields that are undefined. */
export const given = <Fields extends object>(values: Fields): Partial<Fields> =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as Partial<Fields>
