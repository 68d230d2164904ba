"""Units of measure in English, Russian and Chinese, as a dimension and a factor to its base."""

from __future__ import annotations

import re

_TABLE = """
mass 0.001 mg milligram milligrams мг миллиграмм миллиграмма миллиграммов 毫克
mass 1 g gram grams г грамм грамма граммов 克
mass 1000 kg kgs kilogram kilograms кг килограмм килограмма килограммов 千克 公斤
mass 1000000 ton tons tonne tonnes тонн тонна тонны 吨
mass 453.59237 lb lbs pound-weight
mass 28.349523125 oz ounce ounces
length 0.001 mm millimeter millimeters millimetre millimetres мм миллиметр миллиметра миллиметров 毫米
length 0.01 cm centimeter centimeters centimetre centimetres см сантиметр сантиметра сантиметров 厘米
length 1 m meter meters metre metres м метр метра метров 米
length 1000 km kilometer kilometers kilometre kilometres км километр километра километров 公里 千米
length 1609.344 mi mile miles миля мили миль 英里
length 0.3048 ft foot feet 英尺
length 0.0254 inch inches дюйм дюйма дюймов 英寸
volume 0.001 ml milliliter milliliters millilitre millilitres мл миллилитр миллилитра миллилитров 毫升
volume 1 l liter liters litre litres л литр литра литров 升
time 0.001 ms millisecond milliseconds мс миллисекунд 毫秒
time 1 s sec secs second seconds сек секунда секунды секунд 秒 秒钟
time 60 min mins minute minutes мин минута минуты минут 分钟
time 3600 h hr hrs hour hours ч час часа часов 小时 个小时
time 86400 day days день дня дней сутки суток 天 日 个工作日 工作日
time 604800 week weeks неделя недели недель неделю 周 星期 个星期
months 1 month months месяц месяца месяцев мес 个月
months 3 quarter quarters квартал квартала кварталов 季度 个季度
months 12 year years год года лет 年
percent 1 % percent pct процент процента процентов
usd 1 $ usd dollar dollars доллар доллара долларов 美元
eur 1 € eur euro euros евро 欧元
gbp 1 £ gbp pound pounds sterling фунт фунта фунтов 英镑
cny 1 ¥ cny rmb yuan юань юаня юаней 元 人民币
rub 1 ₽ rub ruble rubles rouble roubles руб рубль рубля рублей 卢布
kzt 1 ₸ kzt tenge тенге 坚戈
data 1 byte bytes байт байта 字节
data 1000 kb кб
data 1000000 mb мб
data 1000000000 gb гб
data 1000000000000 tb тб
celsius 1 °c celsius 摄氏度
fahrenheit 1 °f fahrenheit 华氏度
"""

UNITS: dict[str, tuple[str, float]] = {
    name: (line.split()[0], float(line.split()[1])) for line in _TABLE.split("\n") if line for name in line.split()[2:]
}
"""Name -> dimension, factor."""

CURRENCY_SIGNS = "$€£¥₽₸"
_BETWEEN = (
    "working|business|calendar|consecutive|full|paid|fiscal|square|рабочих|рабочий|рабочего|рабочие|календарных|"
    "календарный|календарного|полных|оплачиваемых|подряд|连续|多"
)
_SPELLED = sorted((re.escape(name) for name in UNITS if name not in CURRENCY_SIGNS), key=len, reverse=True)
UNIT_BEHIND = re.compile(
    rf"[ -]?(?:(?:{_BETWEEN})[ ]?)?(?P<unit>per cent|{'|'.join(_SPELLED)}|[{CURRENCY_SIGNS}])(?![a-zа-я])"
)
"""Behind a number, in lower case: a blank, perhaps an adjective, the unit."""
