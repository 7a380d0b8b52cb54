"""Sentences whose mean embedding shows what all embeddings of a model have in common.

The mean is subtracted, as that of the built-in model is: see `search.embeddings`. They are constants, so that nothing
stored has a part in it, and they are of no level: they are sent to a model before anything else.
"""

from __future__ import annotations

from typing import Final

SENTENCES: Final = (
    "The meeting was moved to Tuesday afternoon.",
    "She forgot her umbrella on the bus.",
    "Please send me the invoice by the end of the month.",
    "My brother is learning to play the guitar.",
    "We had soup and fresh bread for dinner.",
    "The train to the coast leaves at seven.",
    "Der Nachbar hat gestern seinen Garten gemäht.",
    "Ich suche eine ruhige Wohnung in der Nähe des Bahnhofs.",
    "Le médecin lui a conseillé de dormir davantage.",
    "Nous avons acheté un nouveau vélo pour notre fille.",
    "El perro ladra cada vez que alguien toca el timbre.",
    "Mañana tengo que entregar el informe.",
    "Il film comincia alle nove di sera.",
    "O carro precisa de pneus novos antes da viagem.",
    "De winkel op de hoek is op maandag gesloten.",
    "Wczoraj padał deszcz przez cały dzień.",
    "Моя сестра работает учительницей в школе.",
    "Автобус знову запізнився на двадцять хвилин.",
    "Akşam yemeğinden sonra parkta yürüdük.",
    "ذهبت إلى السوق واشتريت الخضار والفواكه.",
    "شماره تلفن خود را برای من بفرستید.",
    "कल मेरी माँ का जन्मदिन है।",
    "আমি প্রতিদিন সকালে চা খাই।",
    "நாங்கள் கடற்கரைக்கு நடந்து சென்றோம்.",
    "我们周末一起去爬山吧。",
    "请把窗户关上，外面很冷。",
    "駅の近くに新しい喫茶店ができました。",
    "회의 자료를 오늘 안에 보내 주세요.",
    "วันนี้อากาศร้อนมาก",
    "Hôm qua tôi đọc xong một cuốn sách hay.",
    "Anak itu sedang menggambar rumah dan pohon.",
    "Watoto wanacheza mpira uwanjani.",
)
"""32 sentences in 26 languages."""
